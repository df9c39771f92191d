import { defineCommand } from "../command/command.ts";

export const command = defineCommand({
  name: "resume",
  summary: "Let the commands of a paused sandbox go on",
  positionals: [{ name: "BOX", summary: "An id, or the name of a session as `session:NAME`" }],
  async run({ options, positionals: [box], client, print }) {
    const info = await client.snapshots.resume(box!);
    if (options.json) await print.json(info);
    else await print.line(`${info.id} goes on`);
    return 0;
  },
});
