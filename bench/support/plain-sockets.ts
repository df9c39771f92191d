import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const piece = Buffer.alloc(256 * 1024, "x");

export interface PlainSockets extends Disposable {
  /** Sends so many bytes to whoever connects, and ends. */
  raw: string;
  /** Sends back what comes. */
  echo: string;
}

/** Two Unix sockets as bare Node serves them. */
export async function plainSockets(bytes: number): Promise<PlainSockets> {
  const dir = mkdtempSync(join(tmpdir(), "caisson-bench-plain-"));
  const [raw, echo] = [join(dir, "raw.sock"), join(dir, "echo.sock")];
  await listen((socket) => flood(socket, bytes), raw);
  await listen((socket) => socket.pipe(socket), echo);
  return { raw, echo, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

function listen(serve: (socket: Socket) => void, path: string): Promise<void> {
  return new Promise((resolve) => createServer(serve).listen(path, resolve));
}

function flood(socket: Socket, bytes: number): void {
  let left = bytes;
  const pump = () => {
    while (left > 0) {
      const length = Math.min(left, piece.length);
      left -= length;
      if (!socket.write(piece.subarray(0, length))) return;
    }
    socket.end();
  };
  socket.on("drain", pump);
  socket.on("error", () => {});
  pump();
}
