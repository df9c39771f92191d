import type { OnReadOpts, Socket } from "node:net";
import { borrow } from "@caisson/contract/lent";

const readBytes = 256 * 1024;
/** Every connection reads into it: what was read is copied out before the next read, on whichever connection. */
let memory: Buffer | undefined;

/**
 * Opens a socket whose chunks are borrowed: whoever has passed one on gives it back. An idle socket holds no memory.
 * `open` connects with the given option of `net.connect`.
 */
export function openBorrowing(open: (onread: OnReadOpts) => Socket): Socket {
  memory ??= Buffer.allocUnsafeSlow(readBytes);
  const socket = open({
    buffer: memory,
    // As Node's own reading does: a reader that wants no more stops it, and starts it when it comes back.
    callback: (length, buffer) => socket.push(borrow(buffer.subarray(0, length))),
  });
  return socket;
}
