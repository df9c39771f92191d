import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { watchDisk } from "./disk.ts";
import { endBox } from "./lifecycle.ts";

/** How long the end of a sandbox's process may be told after the loss of its link. */
const togetherMs = 300;

/** Ends a sandbox when its guest or its outer process is gone, and bounds its memory and disk where nothing else does. */
export function watchBox(context: EngineContext, box: Box): void {
  const { launched, guest } = box;
  if (!launched || !guest) return;
  const unwatch: (() => void)[] = [];
  void launched.ended.then((words) => {
    // A daemon that is stopping leaves it to the next one.
    if (!context.closing) void endBox(context, box, "guest_died", words, "daemon");
  });
  void guest.lost.then(async (error) => {
    if (box.ending || context.closing) return;
    const died = await Promise.race([launched.ended.then(() => true), sleep(togetherMs)]);
    if (died) return;
    await endBox(context, box, "guest_lost", error.message, "daemon");
  });
  // A kernel of its own bounds memory by itself, and so does an engine.
  const unbounded = !context.cgroups.cgroups?.controls.memory && !launched.limitMemory && !launched.cgroup;
  if (unbounded && box.record.limits.memoryBytes > 0) {
    box.watched = {
      pid: launched.record.pid,
      memoryBytes: box.record.limits.memoryBytes,
      peakBytes: 0,
      killed: () => {
        box.oomByWatcher++;
      },
    };
    unwatch.push(context.watcher.watch(box.watched));
  }
  const disk = watchDisk(context, box);
  if (disk) unwatch.push(disk);
  box.unwatch = () => {
    for (const end of unwatch) end();
  };
}

function sleep(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms).unref());
}
