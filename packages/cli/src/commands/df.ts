import { defineCommand } from "../command/command.ts";
import { formatSize } from "../text/units.ts";

export const command = defineCommand({
  name: "df",
  summary: "Show what is kept on disk",
  examples: [{ line: "caisson df", what: "`caisson prune` frees what is freeable" }],
  async run({ options, client, print }) {
    const items = await client.system.usage();
    if (options.json) await print.json(items);
    else {
      const rows = items.map((item) => [
        item.what,
        String(item.count),
        formatSize(item.bytes),
        formatSize(item.freeableBytes),
      ]);
      await print.table(["WHAT", "COUNT", "SIZE", "FREEABLE"], rows);
    }
    return 0;
  },
});
