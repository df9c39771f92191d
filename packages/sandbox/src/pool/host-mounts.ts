import { readFileSync } from "node:fs";

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

function readMountinfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    // Without /proc nothing can be compared; age alone bounds what waits.
    return "";
  }
}
