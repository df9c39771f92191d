// The other end for bench/link.ts, in a process of its own: a fake guest, a socket that floods whoever connects, and one
// that echoes. Prints the three paths; ends with its standard input.
import { FakeGuest } from "../../packages/sandbox/src/link/testing/fake-guest.ts";
import { plainSockets } from "./plain-sockets.ts";

const guest = await new FakeGuest().listen();
const sockets = await plainSockets(Number(process.argv[2]));
process.stdout.write(`${JSON.stringify({ guest: guest.path, raw: sockets.raw, echo: sockets.echo })}\n`);
process.stdin.resume();
process.stdin.on("close", async () => {
  await guest[Symbol.asyncDispose]();
  sockets[Symbol.dispose]();
  process.exit();
});
