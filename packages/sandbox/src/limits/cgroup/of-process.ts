import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Cgroup } from "./cgroup.ts";
import { readText } from "./files.ts";
import { readMounts } from "./find.ts";
import { CgroupV1, type Controller, controllers } from "./v1.ts";
import { CgroupV2 } from "./v2.ts";

/** The control group that somebody else keeps a process in; undefined where it cannot be looked at. */
export function cgroupOf(pid: number, proc = "/proc"): Cgroup | undefined {
  const mounts = readMounts(readText(`${proc}/self/mountinfo`));
  const lines = readText(`${proc}/${pid}/cgroup`)
    .split("\n")
    .map((line) => /^\d+:([^:]*):(\/.*)$/.exec(line));
  const paths = new Map<Controller, string>();
  for (const line of lines) {
    for (const name of controllers) {
      const mount = mounts.v1.get(name);
      if (mount !== undefined && line?.[1]?.split(",").includes(name)) paths.set(name, join(mount, line[2]!));
    }
  }
  const memory = paths.get("memory");
  if (memory !== undefined && existsSync(join(memory, "memory.limit_in_bytes"))) return new CgroupV1(paths);
  const own = lines.find((line) => line?.[1] === "")?.[2];
  if (mounts.v2 === undefined || own === undefined) return undefined;
  const path = join(mounts.v2, own);
  return existsSync(join(path, "memory.max")) ? new CgroupV2(path) : undefined;
}
