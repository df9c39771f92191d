import { defineCommand } from "../command/command.ts";

export const command = defineCommand({
  name: "pause",
  summary: "Stop every command of a sandbox until it is resumed",
  positionals: [{ name: "BOX", summary: "An id, or the name of a session as `session:NAME`" }],
  async run({ options, positionals: [box], client, print }) {
    const info = await client.snapshots.pause(box!);
    if (options.json) await print.json(info);
    else await print.line(`${info.id} is paused`);
    return 0;
  },
});
