// A fake guest in a process of its own, so that what the daemon's side costs can be measured alone.
// Prints its socket's path, and ends with its standard input.
import { FakeGuest } from "./fake-guest.ts";

const guest = await new FakeGuest().listen();
process.stdout.write(`${guest.path}\n`);
process.stdin.resume();
process.stdin.on("close", async () => {
  await guest[Symbol.asyncDispose]();
  process.exit();
});
