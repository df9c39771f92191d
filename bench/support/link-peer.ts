// The other end for bench/link.ts, in a process of its own: a fake guest, a socket that floods whoever connects, and one
// that echoes. Prints the three paths; ends with its standard input.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeGuest } from "../../packages/sandbox/src/link/testing/fake-guest.ts";

const bytes = Number(process.argv[2]);
const dir = mkdtempSync(join(tmpdir(), "caisson-bench-link-"));
const piece = Buffer.alloc(256 * 1024, 7);

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

const guest = await new FakeGuest().listen();
const raw = join(dir, "raw.sock");
const echo = join(dir, "echo.sock");
await new Promise<void>((resolve) => createServer(flood).listen(raw, resolve));
await new Promise<void>((resolve) => createServer((socket) => socket.pipe(socket)).listen(echo, resolve));
process.stdout.write(`${JSON.stringify({ guest: guest.path, raw, echo })}\n`);
process.stdin.resume();
process.stdin.on("close", async () => {
  await guest[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
  process.exit();
});
