import type { Box, Client, Run } from "@caisson/client";
import { UsageError } from "../command/usage-error.ts";

/** A box as people name it: its id, `session:NAME`, or a session's bare name. */
export function boxId(word: string): string {
  if (word === "") throw new UsageError("the name of a box is empty");
  return word.startsWith("sb_") || word.startsWith("session:") ? word : `session:${word}`;
}

/** A handle without asking whether it is there: the call that follows says so. */
export function boxNamed(client: Client, word: string): Box {
  return client.sandboxes.at(boxId(word));
}

/** A process by its id, or the box's latest. */
export async function processOf(box: Box, id: string | undefined): Promise<Run> {
  if (id !== undefined) return box.process(id);
  const latest = (await box.processes()).at(-1);
  if (!latest) throw new UsageError("nothing has run in this box yet");
  return box.process(latest.id);
}

/** What a word that is a box means, for help. */
export const boxPlace = { name: "BOX", summary: "A sandbox's id, or a session's name" } as const;
