import type { AddressInfo, Server } from "node:net";
import { CaissonError } from "@caisson/contract";

/** Forwards are for this machine alone. */
export const loopback = "127.0.0.1";

/** Listens on loopback; 0 takes a free port. Resolves with the port. */
export function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") reject(new CaissonError("PORT_IN_USE", `port ${port} is taken`));
      else if (error.code === "EACCES")
        reject(new CaissonError("INVALID_INPUT", `the daemon may not listen on port ${port}`));
      else reject(error);
    });
    server.listen({ host: loopback, port, exclusive: true }, () => {
      server.removeAllListeners("error");
      server.on("error", () => {});
      resolve((server.address() as AddressInfo).port);
    });
  });
}
