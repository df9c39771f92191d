import { openSync, readSync } from "node:fs";

/** What the `host` image shows of the host. */
const shown = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"];

/**
 * The host's mounts that a sandbox of the `host` image would show, as a text to compare. A sandbox made before a
 * mount shows the directory below it.
 */
export function hostMounts(mountinfo = readMountinfo()): string {
  if (mountinfo === last.mountinfo) return last.mounts;
  last = { mountinfo, mounts: shownMounts(mountinfo) };
  return last.mounts;
}

/** Mounts change rarely, and this is asked whenever a sandbox is taken. */
let last = { mountinfo: "", mounts: "" };

function shownMounts(mountinfo: string): string {
  return mountinfo
    .split("\n")
    .filter((line) => {
      const point = line.split(" ", 5)[4] ?? "";
      return point === "/" || shown.some((dir) => point === dir || point.startsWith(`${dir}/`));
    })
    .join("\n");
}

/** The host's mounts as the kernel tells them. */
export function readMountinfo(): string {
  try {
    table ??= openSync("/proc/self/mountinfo", "r");
    // The kernel gives a page or so at a time.
    for (let length = 0; ; ) {
      const got = readSync(table, room, length, room.length - length, length);
      if (got === 0) return room.toString("latin1", 0, length);
      length += got;
      if (length === room.length) room = Buffer.concat([room, Buffer.alloc(length)]);
    }
  } catch {
    // Without /proc nothing can be compared; age alone bounds what waits.
    return "";
  }
}

/** Kept open and filled again: this is asked whenever a sandbox is taken. */
let table: number | undefined;
let room = Buffer.alloc(64 * 1024);
