import { totalmem } from "node:os";

const MiB = 1024 * 1024;
/** What the host can hold is rounded to this: a little more or less of it makes no other template. */
const grain = 128 * MiB;
/** What a kernel and its reserves take of a small machine, and what one part in so many is taken by the list of its pages. */
const ownBytes = 320 * MiB;
const ownPart = 32;
/** A page that a machine touches takes two on the host: its own, and the empty one of the template's that all machines share. */
const takenTwice = 2;
/** What the process that plays a machine takes beside the machine's memory. */
const playerBytes = 512 * MiB;

/**
 * How much of its memory a machine leaves to the sandbox, in few steps: the usual, then always twice as much, and last what the
 * host can hold. A machine's memory is decided when it boots, so each step is a template.
 */
export class MachineSizes {
  /** What those have that ask for no more. */
  readonly usual: number;
  readonly most: number;

  constructor(usual: number, hostBytes = hostMemory()) {
    this.usual = usual;
    const machineBytes = (hostBytes - playerBytes) / takenTwice;
    const held = Math.floor(((machineBytes - ownBytes) * ownPart) / (ownPart + 1) / grain) * grain;
    this.most = Math.max(usual, held);
  }

  /** The smallest that holds so many bytes, which are at most `most`. */
  sizeFor(bytes: number): number {
    let size = this.usual;
    while (size < bytes) size *= 2;
    return Math.min(size, this.most);
  }
}

/** The memory of a machine that leaves so much to its sandbox. */
export function machineMemory(size: number): number {
  return size + ownBytes + Math.ceil(size / ownPart / MiB) * MiB;
}

/** For the log. */
export function wordsOfSize(size: number): string {
  return `of ${size / MiB} MiB`;
}

/** What a machine's process may take on the host. */
export function playerMemory(machineBytes: number): number {
  return takenTwice * machineBytes + playerBytes;
}

/** Of this machine, or of the control group that the daemon itself was put into. */
function hostMemory(): number {
  const group = process.constrainedMemory();
  return group > 0 ? Math.min(group, totalmem()) : totalmem();
}
