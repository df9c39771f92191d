// What a bare Node does without Caisson, in a process of its own: echoes bytes, floods a socket, answers HTTP.
// Prints where; ends with its standard input.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { plainSockets } from "./plain-sockets.ts";

const sockets = await plainSockets(Number(process.argv[2]));
const http = createServer((_, response) => response.end("{}"));
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const { port } = http.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ echo: sockets.echo, raw: sockets.raw, port })}\n`);
process.stdin.resume();
process.stdin.on("close", () => {
  sockets[Symbol.dispose]();
  process.exit();
});
