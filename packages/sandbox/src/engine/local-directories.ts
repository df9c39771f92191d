import { statfs } from "node:fs/promises";

/**
 * File systems of this machine's own disks and memory: ext, XFS, Btrfs, F2FS, tmpfs, ramfs, overlay, SquashFS, EROFS, ZFS. Asking
 * one of them never waits for another machine or program.
 */
const local = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x01021994, 0x858458f6, 0x794c7630, 0x73717368, 0xe0f5e1e2,
  0x2fc12fc1,
]);

/** A directory may be mounted over; until then it is looked at without a detour. */
const rememberedMs = 60_000;
const maxRemembered = 256;

const remembered = new Map<string, number>();

/**
 * Was this directory on a local file system a moment ago? Then the few calls that look at it again take microseconds, and a
 * thread for them many times as long. Elsewhere a call could hold up the whole daemon.
 */
export function isLocalDirectory(path: string): boolean {
  const until = remembered.get(path);
  return until !== undefined && performance.now() < until;
}

/** Finds out, for the next time. */
export async function learnAbout(path: string): Promise<void> {
  try {
    if (!local.has((await statfs(path)).type)) return;
  } catch {
    return;
  }
  if (remembered.size >= maxRemembered) remembered.delete(remembered.keys().next().value!);
  remembered.set(path, performance.now() + rememberedMs);
}
