import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { connect, type OnReadOpts, type Socket } from "node:net";
import { basename, dirname } from "node:path";

/** What the kernel takes as a Unix socket's address. */
const maxAddressBytes = 107;

/** Connects to a Unix socket at a path of any length: a long one by way of its directory's descriptor. */
export async function connectSocket(path: string, options: { onread?: OnReadOpts } = {}): Promise<Socket> {
  if (Buffer.byteLength(path) <= maxAddressBytes) return await connected(path, options);
  await using directory = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return await connected(`/proc/self/fd/${directory.fd}/${basename(path)}`, options);
}

function connected(path: string, options: { onread?: OnReadOpts }): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ path, ...options });
  socket.once("error", reject);
  socket.once("connect", () => {
    socket.off("error", reject);
    resolve(socket);
  });
  return promise;
}
