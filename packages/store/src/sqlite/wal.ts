import { closeSync, existsSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { corruptLog } from "./errors.ts";

const headerBytes = 32;
const frameHeaderBytes = 24;
const bootFileSuffix = "-boot";
/** Read at once: a log that many killed daemons have left may be large. */
const framesAtOnce = 256;

/**
 * Looks for damage in the write-ahead log that a killed daemon left. SQLite stops reading at the first
 * frame whose checksum is wrong and forgets the rest, because that is what a power cut leaves of
 * frames that were never synced. Where the host has not been started anew since, nothing can be torn: a
 * wrong frame with a transaction's last frame behind it is damage, and what was acknowledged would be lost.
 */
export function checkWal(file: string): void {
  const bootId = readBootId();
  const sameBoot = bootId !== "" && readIfThere(`${file}${bootFileSuffix}`)?.toString() === bootId;
  const wal = `${file}-wal`;
  if (sameBoot && existsSync(wal) && !isWholeFile(wal))
    throw corruptLog("the log's newest part is damaged; stop and follow docs/recovery.md");
  if (!sameBoot) writeFileSync(`${file}${bootFileSuffix}`, bootId, { mode: 0o600 });
}

function readBootId(): string {
  return readIfThere("/proc/sys/kernel/random/boot_id")?.toString().trim() ?? "";
}

function readIfThere(path: string): Buffer | undefined {
  return existsSync(path) ? readFileSync(path) : undefined;
}

function isWholeFile(path: string): boolean {
  const fd = openSync(path, "r");
  try {
    return isWhole((at, bytes) => {
      const buffer = Buffer.allocUnsafe(bytes);
      return buffer.subarray(0, readSync(fd, buffer, 0, bytes, at));
    });
  } finally {
    closeSync(fd);
  }
}

/** Does every transaction of the current log, up to the last complete one, have the right checksums? */
function isWhole(read: (at: number, bytes: number) => Buffer): boolean {
  const header = read(0, headerBytes);
  if (header.length < headerBytes) return true;
  const magic = header.readUInt32BE(0);
  if ((magic & 0xfffffffe) >>> 0 !== 0x377f0682) return false;
  const bigEndian = (magic & 1) === 1;
  const frameBytes = frameHeaderBytes + header.readUInt32BE(8);
  const salt = header.subarray(16, 24);
  let sums = checksum([0, 0], header.subarray(0, 24), bigEndian);
  if (!matches(sums, header, 24)) return false;
  let broken = false;
  for (let begin = headerBytes; ; begin += framesAtOnce * frameBytes) {
    const frames = read(begin, framesAtOnce * frameBytes);
    for (let at = 0; at + frameBytes <= frames.length; at += frameBytes) {
      // Frames of an older log, which this one has not written over yet, carry another salt.
      if (!frames.subarray(at + 8, at + 16).equals(salt)) return true;
      const endsTransaction = frames.readUInt32BE(at + 4) !== 0;
      // Without one, these are the remains of a transaction that was given up: the disk was full, or a kill.
      if (broken && endsTransaction) return false;
      if (broken) continue;
      sums = checksum(sums, frames.subarray(at, at + 8), bigEndian);
      sums = checksum(sums, frames.subarray(at + frameHeaderBytes, at + frameBytes), bigEndian);
      broken = !matches(sums, frames, at + 16);
    }
    if (frames.length < framesAtOnce * frameBytes) return true;
  }
}

type Sums = [number, number];

/** As in the file format's description, "WAL checksum algorithm". */
function checksum([a, b]: Sums, bytes: Buffer, bigEndian: boolean): Sums {
  let first = a;
  let second = b;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + view.getUint32(at, !bigEndian) + second) >>> 0;
    second = (second + view.getUint32(at + 4, !bigEndian) + first) >>> 0;
  }
  return [first, second];
}

function matches([a, b]: Sums, wal: Buffer, at: number): boolean {
  return wal.readUInt32BE(at) === a && wal.readUInt32BE(at + 4) === b;
}
