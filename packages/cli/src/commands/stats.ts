import { defineCommand } from "../command/command.ts";
import { formatDuration, formatSize } from "../text/units.ts";
import { boxNamed, boxPlace } from "../work/box.ts";

export const command = defineCommand({
  name: "stats",
  summary: "Show what sandboxes use right now",
  positionals: [{ ...boxPlace, rest: true, optional: true }],
  examples: [{ line: "caisson stats", what: "All that are living" }],
  async run({ options, positionals, client, print }) {
    const names = [...positionals];
    if (names.length === 0) for await (const { id } of client.sandboxes.list()) names.push(id);
    const all = await Promise.all(
      names.map(async (box) => ({ box, ...(await boxNamed(client, box).stats()) })),
    );
    if (options.json) {
      await print.json(all);
      return 0;
    }
    const rows = all.map((stats) => [
      print.safe(stats.box),
      formatDuration(stats.cpuMs),
      formatSize(stats.memoryBytes),
      formatSize(stats.memoryPeakBytes),
      String(stats.pids),
      formatSize(stats.diskBytes),
      String(stats.running),
      stats.source,
    ]);
    await print.table(["BOX", "CPU", "MEMORY", "PEAK", "PIDS", "DISK", "RUNNING", "SOURCE"], rows);
    return 0;
  },
});
