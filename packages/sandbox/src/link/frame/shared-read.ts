import type { OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";

type Take = (bytes: Uint8Array) => void;

/** As much as a Unix socket usually holds. */
const readBytes = 256 * 1024;
/** Every link reads into it: what was read is handled before the next read, on whichever link. */
let memory: Buffer | undefined;
const readers = new WeakMap<Duplex, { take: Take | undefined }>();

/**
 * Opens a socket that reads into memory which all links share, instead of memory of its own for each
 * read: a fast output would make the garbage collector the busiest part of the daemon.
 * `open` connects with the given option of `net.connect`.
 */
export async function openSharedSocket(open: (onread: OnReadOpts) => Promise<Socket>): Promise<Socket> {
  memory ??= Buffer.allocUnsafeSlow(readBytes);
  const reader: { take: Take | undefined } = { take: undefined };
  const socket = await open({
    buffer: memory,
    callback: (length, buffer) => {
      // A guest says nothing before it was spoken to.
      if (reader.take) reader.take(buffer.subarray(0, length));
      else socket.destroy();
      return true;
    },
  });
  readers.set(socket, reader);
  return socket;
}

/** Hands everything that comes to `take`; the bytes are valid only during the call. */
export function receive(socket: Duplex, take: Take): void {
  const reader = readers.get(socket);
  if (reader) reader.take = take;
  else socket.on("data", take);
}
