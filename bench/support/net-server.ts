// What is fetched: a bare HTTP server on loopback, and a bare relay of TCP in front of it to compare with. `relay PORT` or
// `serve BYTES`; prints its port and ends with its standard input.
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server } from "node:net";

const [role, argument] = process.argv.slice(2);
const server = role === "relay" ? relay(Number(argument)) : serve(Number(argument));
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.resume();
process.stdin.on("close", () => process.exit());

function serve(bytes: number): Server {
  const piece = Buffer.alloc(256 * 1024, "x");
  const web = createHttpServer({ keepAliveTimeout: 60_000 }, (message, response) => {
    if (message.url !== "/large") {
      response.end("{}");
      return;
    }
    response.setHeader("Content-Length", bytes);
    let left = bytes;
    const pump = () => {
      while (left > 0) {
        const length = Math.min(left, piece.length);
        left -= length;
        if (!response.write(piece.subarray(0, length))) return void response.once("drain", pump);
      }
      response.end();
    };
    pump();
  });
  return web;
}

function relay(port: number): Server {
  return createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => client.destroy());
  });
}
