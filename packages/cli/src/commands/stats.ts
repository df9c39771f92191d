import { CaissonError } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { formatDuration, formatSize } from "../text/units.ts";
import { boxNamed, boxPlace } from "../work/box.ts";

export const command = defineCommand({
  name: "stats",
  summary: "Show what sandboxes use right now",
  positionals: [{ ...boxPlace, rest: true, optional: true }],
  examples: [{ line: "caisson stats", what: "All that are living" }],
  async run({ options, positionals, client, print }) {
    const all = positionals.length > 0 ? await Promise.all(positionals.map(statsOf)) : await statsOfLiving();

    async function statsOf(box: string) {
      return { box, ...(await boxNamed(client, box).stats()) };
    }

    /** One that ends while it is asked is not living. */
    async function statsOfLiving() {
      const asked: ReturnType<typeof statsOf>[] = [];
      for await (const { id } of client.sandboxes.list()) asked.push(statsOf(id));
      const answers = await Promise.allSettled(asked);
      for (const answer of answers) {
        if (answer.status === "rejected" && !isGone(answer.reason)) throw answer.reason;
      }
      return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    }

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

function isGone(thrown: unknown): boolean {
  return ["SANDBOX_ENDED", "SANDBOX_NOT_FOUND"].includes(CaissonError.from(thrown).code);
}
