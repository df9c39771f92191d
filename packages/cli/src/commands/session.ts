import { defineCommand } from "../command/command.ts";
import { formatAge } from "../text/units.ts";

const list = defineCommand({
  name: "ls",
  summary: "List living sessions",
  async run({ options, client, print }) {
    const sessions = await client.sessions.list();
    if (options.json) await print.json(sessions);
    else {
      const rows = sessions.map(({ name, sandbox }) => [
        print.safe(name),
        sandbox.id,
        sandbox.state,
        formatAge(sandbox.createdAt),
        print.safe(sandbox.workspace?.dir || "-"),
      ]);
      await print.table(["SESSION", "BOX", "STATE", "AGE", "WORKSPACE"], rows);
    }
    return 0;
  },
});

const close = defineCommand({
  name: "close",
  summary: "End sessions and their sandboxes",
  positionals: [{ name: "NAME", summary: "The session's name", rest: true }],
  async run({ options, positionals, client, print }) {
    const closed = [];
    for (const name of positionals) {
      closed.push(await client.sessions.close(name));
      if (!options.json) await print.line(print.safe(name));
    }
    if (options.json) await print.json(closed);
    return 0;
  },
});

export const command = defineCommand({
  name: "session",
  summary: "List and close sessions",
  commands: [list, close],
  examples: [{ line: "caisson session close work", what: "End the session `work`" }],
});
