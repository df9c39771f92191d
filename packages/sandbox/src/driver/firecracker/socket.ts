import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { CaissonError } from "@caisson/contract/errors";

/** Names a file without opening it; Node has no name for it. */
const pathOnly = 0o10000000;

/**
 * Connects to a socket in a jail. The directory is the jailed program's own: had it been taken over, it could put a link
 * to a socket of the host's in its place. So the very file that was looked at is connected to.
 */
export async function connectOwned(path: string, uid: number): Promise<Socket> {
  await using file = await open(path, pathOnly | constants.O_NOFOLLOW);
  const found = await file.stat();
  if (!found.isSocket() || found.uid !== uid) {
    throw new CaissonError("GUEST_LOST", "the machine's socket is not the machine's");
  }
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ path: `/proc/self/fd/${file.fd}` });
  socket.once("error", reject);
  socket.once("connect", () => {
    socket.off("error", reject);
    resolve(socket);
  });
  return await promise;
}
