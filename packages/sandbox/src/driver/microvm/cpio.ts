/** One member of a boot archive. */
export interface CpioEntry {
  /** Relative to the root, without a slash in front. */
  path: string;
  mode: number;
  /** Empty for directories. */
  content: Uint8Array;
}

const directoryMode = 0o040755;
const fileMode = 0o100000;

export function cpioDirectory(path: string): CpioEntry {
  return { path, mode: directoryMode, content: new Uint8Array() };
}

export function cpioFile(path: string, content: Uint8Array, permissions = 0o644): CpioEntry {
  return { path, mode: fileMode | permissions, content };
}

/** The archive that a Linux kernel unpacks as its first root ("newc"); the same bytes for the same entries. */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const end: CpioEntry = { path: "TRAILER!!!", mode: 0, content: new Uint8Array() };
  return Buffer.concat([...entries, end].flatMap((entry, index) => member(entry, index + 1)));
}

function member({ path, mode, content }: CpioEntry, inode: number): Uint8Array[] {
  const name = Buffer.from(`${path}\0`);
  // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check
  const numbers = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = Buffer.from(`070701${numbers.map((value) => value.toString(16).padStart(8, "0")).join("")}`);
  return [header, name, padding(header.length + name.length), content, padding(content.length)];
}

function padding(length: number): Uint8Array {
  return new Uint8Array((4 - (length % 4)) % 4);
}
