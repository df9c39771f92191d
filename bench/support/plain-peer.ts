// What a bare Node does without Caisson, in a process of its own: echoes bytes, floods a socket, answers HTTP.
// Prints where; ends with its standard input.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const bytes = Number(process.argv[2]);
const dir = mkdtempSync(join(tmpdir(), "caisson-bench-plain-"));
const piece = Buffer.alloc(256 * 1024, "x");

function flood(socket: Socket): void {
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

const [echo, raw] = [join(dir, "echo.sock"), join(dir, "raw.sock")];
await new Promise<void>((resolve) => createServer((socket) => socket.pipe(socket)).listen(echo, resolve));
await new Promise<void>((resolve) => createServer(flood).listen(raw, resolve));
const http = createHttpServer((_, response) => response.end("{}"));
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
process.stdout.write(`${JSON.stringify({ echo, raw, port: (http.address() as AddressInfo).port })}\n`);
process.stdin.resume();
process.stdin.on("close", () => {
  rmSync(dir, { recursive: true, force: true });
  process.exit();
});
