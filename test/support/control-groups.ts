// Control groups of daemons' sandboxes: each daemon has one above all of them, named after its directory.
import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "./eventually.ts";

/** Those of the daemon that has, or had, this directory. */
export function controlGroupsOf(home: string): string[] {
  const name = createHash("sha256").update(home).digest("hex").slice(0, 12);
  return ["pids", "memory", "cpu", "."]
    .map((controller) => join("/sys/fs/cgroup", controller, "caisson", name))
    .filter(existsSync);
}

/** Microseconds of each tenth of a second that a sandbox's control group may have. */
export function processorQuotasOf(boxId: string): string[] {
  const files = globSync(`/sys/fs/cgroup/**/caisson/*/${boxId}/{cpu.cfs_quota_us,cpu.max}`);
  return files.map((file) => readFileSync(file, "utf8").split(/\s/)[0]!);
}

/** What the processes of a sandbox's control group may have together. */
export function memoryBoundsOf(boxId: string): number[] {
  const files = globSync(`/sys/fs/cgroup/**/caisson/*/${boxId}/{memory.limit_in_bytes,memory.max}`);
  return files.map((file) => Number(readFileSync(file, "utf8")));
}

/** For a daemon that was killed and cannot; its sandboxes must be gone or going. */
export async function removeControlGroupsOf(home: string): Promise<void> {
  for (const group of controlGroupsOf(home)) await eventually(() => removed(group), Boolean, { what: group });
}

function removed(group: string): boolean {
  try {
    for (const entry of readdirSync(group, { withFileTypes: true }))
      if (entry.isDirectory()) rmdirSync(join(group, entry.name));
    rmdirSync(group);
    return true;
  } catch {
    return false;
  }
}
