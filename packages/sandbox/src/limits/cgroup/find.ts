import type { Cgroups } from "./cgroup.ts";
import { readText } from "./files.ts";
import { CgroupsV1 } from "./v1.ts";
import { CgroupsV2 } from "./v2.ts";

/** What this machine offers, or why it offers nothing. */
export type FoundCgroups = { cgroups: Cgroups } | { cgroups: undefined; reason: string };

/** Looks for control groups that this process can write. `name` keeps daemons apart. */
export function findCgroups(name: string, proc = "/proc/self"): FoundCgroups {
  const mounts = readMounts(readText(`${proc}/mountinfo`));
  const v1 = CgroupsV1.open(mounts.v1, name);
  if (v1) return { cgroups: v1 };
  const own = /^0::(.*)$/m.exec(readText(`${proc}/cgroup`))?.[1] ?? "/";
  const v2 = mounts.v2 === undefined ? undefined : CgroupsV2.open(mounts.v2, own, name);
  if (v2) return { cgroups: v2 };
  const any = mounts.v1.size > 0 || mounts.v2 !== undefined;
  return {
    cgroups: undefined,
    reason: any ? "no control group is writable for this user" : "no control groups are mounted",
  };
}

/** Where cgroup file systems are mounted: v1 by controller, and v2. */
export function readMounts(mountinfo: string): { v1: Map<string, string>; v2: string | undefined } {
  const v1 = new Map<string, string>();
  let v2: string | undefined;
  for (const line of mountinfo.split("\n")) {
    const [before, after] = line.split(" - ");
    const mountPoint = before
      ?.split(" ")[4]
      ?.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
    const [type, , options] = after?.split(" ") ?? [];
    if (mountPoint === undefined) continue;
    if (type === "cgroup2") v2 ??= mountPoint;
    if (type === "cgroup") for (const option of options?.split(",") ?? []) v1.set(option, mountPoint);
  }
  return { v1, v2 };
}
