import { chmod, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";

/** What a connection turns out to speak, by its first bytes. */
export interface Protocols {
  /** Absent where ttRPC is not served. */
  ttrpc?: (socket: Socket, first: Buffer) => void;
  http1: (socket: Socket) => void;
  http2: (socket: Socket) => void;
}

/** A silent connection to a network port is closed after so long. */
const firstByteMs = 10_000;

/** HTTP/2 begins with `PRI * HTTP/2.0`; no method of HTTP/1 that we serve begins with `PR`. */
const http2Preface = Buffer.from("PRI ");

/** One listener for everything: the first byte of a ttRPC frame is always zero, and no other protocol's is. */
export function createListener(protocols: Protocols): Server {
  return createServer({ noDelay: true, pauseOnConnect: false }, (socket) => {
    const timer = protocols.ttrpc === undefined ? setTimeout(() => socket.destroy(), firstByteMs) : undefined;
    socket.on("error", ignore);
    socket.once("close", () => clearTimeout(timer));
    sniff(socket, Buffer.alloc(0), (first) => {
      clearTimeout(timer);
      socket.off("error", ignore);
      if (first[0] === 0) {
        if (protocols.ttrpc === undefined) socket.destroy();
        else protocols.ttrpc(socket, first);
        return;
      }
      // HTTP servers read the socket from its beginning.
      socket.pause();
      socket.unshift(first);
      if (first.subarray(0, 4).equals(http2Preface)) protocols.http2(socket);
      else protocols.http1(socket);
    });
  });
}

/** Reads until the protocol is known; one byte is enough unless it is a `P`. */
function sniff(socket: Socket, before: Buffer, decide: (first: Buffer) => void): void {
  socket.once("data", (chunk: Buffer) => {
    const first = before.length === 0 ? chunk : Buffer.concat([before, chunk]);
    const undecided =
      first.length < http2Preface.length && http2Preface.subarray(0, first.length).equals(first);
    if (undecided) sniff(socket, first, decide);
    else decide(first);
  });
}

function ignore(): void {}

/** Listens on a Unix socket that only its owner can open. The directory is the owner's alone already. */
export async function listenOnPath(server: Server, path: string): Promise<void> {
  await rm(path, { force: true });
  await listening(server, () => {
    // The socket is made inside this call, so nothing else is made under this mask.
    const before = process.umask(0o177);
    try {
      server.listen({ path, backlog: 1024 });
    } finally {
      process.umask(before);
    }
  });
  await chmod(path, 0o600);
}

/** Listens on a TCP port; returns the one that was taken when `port` is 0. */
export async function listenOnPort(server: Server, host: string, port: number): Promise<number> {
  await listening(server, () => server.listen({ host, port, backlog: 1024 }));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

function listening(server: Server, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    listen();
  });
}
