import { constants } from "node:os";
import type { Exited } from "@caisson/contract/link";
import type { EngineContext } from "../context.ts";
import { hasChanges } from "../layer.ts";
import type { ExitRecord } from "../records.ts";
import { signalName } from "../signals.ts";
import { hasLayer } from "../workspace.ts";
import type { Proc } from "./proc.ts";

/** A command's end as the guest tells it, with what only the host knows. */
export function exitRecord(context: EngineContext, proc: Proc, exited: Exited): ExitRecord {
  return {
    code: exited.signal !== 0 ? 128 + exited.signal : exited.code,
    signal: signalName(exited.signal),
    timedOut: exited.timedOut,
    oomKilled: wasOomKilled(proc, exited),
    ...(proc.overDisk && exited.signal === constants.signals.SIGKILL ? { diskExceeded: true } : {}),
    ...(mayHaveTouchedProject(context, proc) ? { projectTouched: true } : {}),
    truncated: proc.log.firstKept > 0,
    durationMs: Number(exited.durationUs) / 1000,
    userMs: Number(exited.userUs) / 1000,
    systemMs: Number(exited.systemUs) / 1000,
    maxRssBytes: Number(exited.maxRssBytes),
    lost: "",
  };
}

/** Of a command whose sandbox ends with it. What a project that travelled holds is not here yet. */
function mayHaveTouchedProject(context: EngineContext, { id, box: { record } }: Proc): boolean {
  const { workspace, place, runs } = record;
  if (runs !== id || workspace.dir === "") return false;
  if (workspace.transferred) return true;
  return hasLayer(workspace) && hasChanges(context.dirOf(place));
}

/** Memory was exhausted since the command began, and it or a part of it was killed. */
function wasOomKilled(proc: Proc, exited: Exited): boolean {
  if (exited.code === 0 || exited.timedOut) return false;
  if (exited.signal !== 0 && exited.signal !== constants.signals.SIGKILL) return false;
  if (proc.box.launched?.limitMemory) {
    proc.box.oomByKernel = Math.max(proc.box.oomByKernel, Number(exited.kernelOomKills));
  }
  return oomKills(proc.box) > proc.oomBefore;
}

/** How often memory was exhausted in a sandbox. */
export function oomKills(box: Proc["box"]): number {
  return (box.cgroup?.oomKills() ?? 0) + box.oomByWatcher + box.oomByKernel;
}
