import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Joins two connections: each direction ends by itself, and the failure of one resets the other. */
export function join(near: Socket | Duplex, far: Duplex): void {
  near.pipe(far);
  far.pipe(near);
  near.on("error", () => far.destroy());
  far.on("error", () => reset(near));
  near.on("close", () => far.destroy());
  far.on("close", () => {
    if (!near.writableFinished) reset(near);
  });
}

/** Whoever is at the other end gets an error and not an end. */
export function reset(socket: Socket | Duplex): void {
  if ("resetAndDestroy" in socket) socket.resetAndDestroy();
  else socket.destroy();
}
