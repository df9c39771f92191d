/** Is `path` the directory `root`, or below it? */
export function isAtOrBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root === "/" ? "/" : `${root}/`);
}

/** Absolute and plain, as the guest takes it. */
export function isPlain(path: string): boolean {
  if (!path.startsWith("/") || path.length > 4096 || /\p{Cc}/u.test(path)) return false;
  return path
    .slice(1)
    .split("/")
    .every((part) => part !== "" && part !== "." && part !== ".." && Buffer.byteLength(part) <= 255);
}

/** What every sandbox of the image `host` shows of the host anyway. */
const shown = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

export function isShown(path: string): boolean {
  return shown.some((root) => isAtOrBelow(path, root));
}
