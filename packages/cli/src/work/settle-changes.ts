import type { Call } from "../command/command.ts";
import { countable } from "./changes.ts";

type Caller = Pick<Call, "client" | "print">;

/** Says in one line that something was changed and what can be done with it. */
export async function hintAtChanges({ client, print }: Caller, sandboxId: string): Promise<void> {
  // A hint that cannot be given is not worth an error: the command has done its work.
  const changes = await client.sandboxes
    .at(sandboxId)
    .workspace.diff()
    .catch(() => []);
  const changed = countable(changes).length;
  if (changed === 0) return;
  await print.note(
    `${files(changed)} changed, kept aside: \`caisson diff\`, then \`caisson apply\` or \`caisson discard\``,
  );
}

/** Brings what was changed into the project and says what became of it. */
export async function applyChanges({ client, print }: Caller, sandboxId: string): Promise<void> {
  const { applied, conflicts, withheld } = await client.sandboxes.at(sandboxId).workspace.apply();
  const left = [
    conflicts > 0 ? `${conflicts} in conflict` : "",
    withheld > 0 ? `${withheld} withheld` : "",
  ].filter(Boolean);
  if (applied === 0 && left.length === 0) return;
  await print.note(
    `${files(applied)} applied${left.length > 0 ? ` (${left.join(", ")}: see \`caisson diff\`)` : ""}`,
  );
}

function files(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}
