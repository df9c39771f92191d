import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type Stats, StatsSchema } from "@caisson/contract";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";

/** What a sandbox uses right now: by its control group where it has one, by the guest's view of /proc elsewhere. */
export async function statsOf(context: EngineContext, box: Box): Promise<Stats> {
  const [report, layerBytes] = await Promise.all([box.livingGuest().usage(), layerSize(context, box)]);
  const group = box.cgroup?.usage();
  const memory = box.launched?.cgroup || context.cgroups.cgroups?.controls.memory ? group : undefined;
  return create(StatsSchema, {
    cpuMs: (group?.cpuUs ?? Number(report.cpuUs)) / 1000,
    memoryBytes: memory ? BigInt(memory.memoryBytes) : report.rssBytes,
    memoryPeakBytes: BigInt(memory ? memory.memoryPeakBytes : peakOf(box, Number(report.rssBytes))),
    pids: report.processes,
    diskBytes: report.diskBytes + BigInt(layerBytes),
    running: box.running().length,
    source: memory ? "cgroup" : "proc",
  });
}

/** The most that is known where no control group counts: a look may come when the command is over. */
function peakOf(box: Box, now: number): number {
  const largest = [...box.processes.values()].map(({ record }) => record.exit?.maxRssBytes ?? 0);
  return Math.max(now, box.watched?.peakBytes ?? 0, ...largest);
}

async function layerSize(context: EngineContext, box: Box): Promise<number> {
  if (box.record.workspace.dir === "") return 0;
  return context.parts.trees.size(join(context.dirOf(box.record.place), "layer")).catch(() => 0);
}
