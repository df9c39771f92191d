import { CaissonError, type Client } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { labelsFrom, specOptions, workspaceOfSnapshot } from "../work/spec-options.ts";

export const command = defineCommand({
  name: "restore",
  summary: "Make a sandbox from a snapshot and print its id",
  details:
    "It is a new one, with the project, profile and limits of that which was kept (of an imported one: with its files); that one, if it still lives, goes on.\n" +
    "For other options than these: `caisson create --snapshot`.",
  positionals: [{ name: "SNAPSHOT", summary: "An id, or a template's name" }],
  options: {
    session: {
      kind: "text",
      short: "s",
      value: "NAME",
      summary: "Give it a name, under which `run` and `exec` find it",
    },
    workspace: {
      kind: "text",
      value: "DIR",
      summary: "Of one that was imported: the directory that is its project here",
    },
    mode: specOptions.mode,
    label: { kind: "text", short: "l", many: true, value: "KEY=VALUE", summary: "Label the sandbox" },
  },
  examples: [
    {
      line: "caisson restore --session again $(caisson snapshot create session:work)",
      what: "A second one that goes on from where `work` is",
    },
  ],
  async run({ options, positionals: [snapshot], client, io, print }) {
    if (options.session) await refuseLiving(client, options.session);
    const { workspace } = workspaceOfSnapshot(options, io);
    const labels = labelsFrom(options.label);
    const spec = { snapshot: snapshot!, labels, ...(workspace ? { workspace } : {}) };
    const box = options.session
      ? await client.sessions.open(options.session, spec)
      : await client.create(spec);
    if (options.json) await print.json(box.info);
    else await print.line(box.id);
    return 0;
  },
});

/** Opening one that lives would give it back as it is. */
async function refuseLiving(client: Client, name: string): Promise<void> {
  const living = await client.sessions.list();
  if (!living.some((session) => session.name.toLowerCase() === name.toLowerCase())) return;
  throw new CaissonError("SESSION_CONFLICT", `the session ${name} lives already: nothing was restored`);
}
