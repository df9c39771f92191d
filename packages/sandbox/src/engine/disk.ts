import { readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { WorkspaceMode } from "@caisson/contract";
import { type DiskUse, treeOf } from "../limits/index.ts";
import type { Box } from "./box.ts";
import { cachePaths } from "./caches.ts";
import type { EngineContext } from "./context.ts";
import { layerName } from "./layer.ts";
import { endBox } from "./lifecycle.ts";
import { hasLayer } from "./workspace.ts";

const SIGKILL = 9;
/** A file has at least so much of the bound, as in the private mounts. */
const bytesPerFile = 4096;

/** Bounds what a sandbox writes to its project and to kept caches. */
export function watchDisk(context: EngineContext, box: Box): (() => void) | undefined {
  const { workspace, limits, place, caches = [] } = box.record;
  if (!hasLayer(workspace) || limits.diskBytes === 0) return undefined;
  const upper = join(context.dirOf(place), layerName, "upper");
  const measure = (path: string) => context.parts.trees.measure(path);
  const places = [
    // What a copy began with is not the sandbox's.
    { path: upper, before: workspace.mode === WorkspaceMode.COPY ? measure(workspace.dir) : nothing },
    ...cachePaths(context, workspace.dir, caches).map((path) => ({ path, before: measure(path) })),
  ];
  for (const { before } of places) before.catch(() => {});
  let isTold = false;
  return context.diskWatcher.watch({
    bound: { bytes: limits.diskBytes, files: Math.ceil(limits.diskBytes / bytesPerFile) },
    isBusy: () => box.running().length > 0,
    async measure() {
      const uses = places.map(async ({ path, before }) => less(await measure(path), await before));
      const named = (await Promise.all(uses)).reduce(sum);
      return sum(named, box.launched ? unnamedFiles(box.launched.record.pid, workspace.dir) : zero);
    },
    exceeded(used) {
      const message = `it wrote ${used.bytes} bytes in ${used.files} files to its project`;
      if (isTold) return void endBox(context, box, "disk_exceeded", message, "daemon");
      isTold = true;
      const data = { ...used, bound_bytes: limits.diskBytes };
      void context.commitSurely(
        [{ type: "sandbox.disk_exceeded", actor: "daemon", sandboxId: box.id, data }],
        [],
      );
      for (const proc of box.running()) {
        proc.overDisk = true;
        box.guest?.signal(proc.record.stream, SIGKILL, true).catch(() => {});
      }
    },
  });
}

const zero: DiskUse = { bytes: 0, files: 0 };
const nothing = Promise.resolve(zero);

function sum(a: DiskUse, b: DiskUse): DiskUse {
  return { bytes: a.bytes + b.bytes, files: a.files + b.files };
}

function less(now: DiskUse, before: DiskUse): DiskUse {
  return { bytes: Math.max(0, now.bytes - before.bytes), files: Math.max(0, now.files - before.files) };
}

/** Files of the project that were removed while somebody has them open: no walk finds them, and they take their place. */
function unnamedFiles(pid: number, projectDir: string): DiskUse {
  const found = new Map<number, number>();
  for (const member of treeOf(pid)) {
    const dir = `/proc/${member.pid}/fd`;
    for (const name of namesIn(dir)) {
      try {
        if (!readlinkSync(join(dir, name)).startsWith(`${projectDir}/`)) continue;
        const { nlink, ino, blocks } = statSync(join(dir, name));
        if (nlink === 0) found.set(ino, blocks * 512);
      } catch {
        // It was closed meanwhile.
      }
    }
  }
  return { bytes: [...found.values()].reduce((all, bytes) => all + bytes, 0), files: found.size };
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
