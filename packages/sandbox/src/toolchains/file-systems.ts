import { readFileSync, statfsSync } from "node:fs";

/** Those on which the kernel can show an owner as somebody else: ext, XFS, Btrfs, F2FS, tmpfs, SquashFS, EROFS. */
const mapping = new Set([0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x01021994, 0x73717368, 0xe0f5e1e2]);

/** Elsewhere what is there is shown as it is: readable where it is to everybody. */
export function canMapOwners(path: string): boolean {
  try {
    return mapping.has(statfsSync(path).type);
  } catch {
    return false;
  }
}

/** Where file systems are mounted. */
export function mountPoints(mountinfo = readMountinfo()): string[] {
  return mountinfo.split("\n").flatMap((line) => {
    const point = line.split(" ", 5)[4];
    // Blanks and backslashes are written as three octal digits.
    return point
      ? [point.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))]
      : [];
  });
}

function readMountinfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}
