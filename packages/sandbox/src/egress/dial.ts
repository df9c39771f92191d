import { connect, type Socket } from "node:net";
import type { Address } from "./addresses.ts";
import { openBorrowing } from "./reading.ts";

/** How long an address may take before the next one is tried beside it. */
const headStartMs = 300;

/** Connects to one of these addresses, in their order, and to nothing else. Rejects with the first failure. */
export function dial(addresses: readonly Address[], port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const trying = new Set<Socket>();
    let next = 0;
    let failure: Error | undefined;
    let headStart: NodeJS.Timeout | undefined;
    let over = false;
    const finish = (winner?: Socket) => {
      over = true;
      clearTimeout(headStart);
      signal.removeEventListener("abort", abandon);
      for (const socket of trying) if (socket !== winner) socket.destroy();
      if (winner) resolve(winner);
      else reject(failure ?? new Error("there is no address to connect to"));
    };
    const abandon = () => {
      failure = signal.reason as Error;
      next = addresses.length;
      finish();
    };
    const tryNext = () => {
      clearTimeout(headStart);
      const address = addresses[next++];
      if (!address) {
        if (trying.size === 0) finish();
        return;
      }
      // No lookup: the text is an address.
      const { text: host, family } = address;
      const socket = openBorrowing((onread) =>
        connect({ host, port, family, allowHalfOpen: true, noDelay: true, onread }),
      );
      trying.add(socket);
      const failed = (error: Error) => {
        failure ??= error;
        trying.delete(socket);
        if (!over) tryNext();
      };
      socket.once("error", failed);
      socket.once("connect", () => {
        socket.off("error", failed);
        socket.on("error", () => {});
        finish(socket);
      });
      if (next < addresses.length) headStart = setTimeout(tryNext, headStartMs).unref();
    };
    if (signal.aborted) return abandon();
    signal.addEventListener("abort", abandon, { once: true });
    tryNext();
  });
}
