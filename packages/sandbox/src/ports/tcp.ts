import { createServer, type Server, type Socket } from "node:net";
import type { Dial, Entrance } from "./entrance.ts";
import { join, reset } from "./join.ts";
import { listen } from "./listen.ts";

const maxConnections = 512;

/** Bytes as they are: every connection to the port becomes one inside. */
export async function openTcp(hostPort: number, dial: Dial): Promise<Entrance> {
  const sockets = new Set<Socket>();
  const server: Server = createServer(
    { allowHalfOpen: true, pauseOnConnect: true, noDelay: true },
    (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      socket.on("error", () => {});
      dial().then(
        (inside) => {
          if (socket.destroyed) inside.destroy();
          else join(socket, inside);
        },
        () => reset(socket),
      );
    },
  );
  server.maxConnections = maxConnections;
  return {
    hostPort: await listen(server, hostPort),
    close() {
      server.close();
      for (const socket of sockets) reset(socket);
    },
  };
}
