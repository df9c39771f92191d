import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream";
import type { Dial, Entrance } from "../entrance.ts";
import { join } from "../join.ts";
import { listen } from "../listen.ts";
import { judge, type Pass } from "./gate.ts";
import { headersInside, headersOutside, upgradeOf } from "./headers.ts";

const maxConnections = 256;

export interface PreviewOptions {
  label: string;
  token: string;
  /** In the sandbox. */
  port: number;
  dial: Dial;
}

/** HTTP and WebSockets for a browser: what may pass goes on to the port inside. */
export async function openPreview(hostPort: number, options: PreviewOptions): Promise<Entrance> {
  const pass: Pass = { label: options.label, token: options.token, hostPort: 0 };
  const sockets = new Set<Socket>();
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 0, keepAliveTimeout: 5000 });
  server.maxConnections = maxConnections;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", (incoming, response) => {
    const verdict = judge(incoming, pass);
    if (verdict.kind === "pass") void relay(incoming, response, pass, options);
    else if (verdict.kind === "refuse") say(response, verdict.status, verdict.why);
    else {
      const headers = { location: "/", "set-cookie": verdict.cookie, "referrer-policy": "no-referrer" };
      response.writeHead(303, { ...headers, "cache-control": "no-store" }).end();
    }
  });
  server.on("upgrade", (incoming, socket, head) => {
    socket.on("error", () => {});
    const verdict = judge(incoming, pass);
    if (verdict.kind === "pass") void relayUpgrade(incoming, socket, head, pass, options);
    else sayRaw(socket, verdict.kind === "refuse" ? verdict.status : 400);
  });
  pass.hostPort = await listen(server, hostPort);
  return {
    hostPort: pass.hostPort,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function relay(
  incoming: IncomingMessage,
  response: ServerResponse,
  pass: Pass,
  { port, dial }: PreviewOptions,
): Promise<void> {
  const upstream = await ask(incoming, headersInside(incoming.headersDistinct, pass, port), dial);
  if (!upstream) return say(response, 502, `nothing answers on port ${port} in the sandbox`);
  response.once("close", () => upstream.destroy());
  upstream.once("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, headersOutside(answer.headersDistinct, pass, port));
    pipeline(answer, response, () => {});
  });
  upstream.once("error", () => {
    if (response.headersSent) response.destroy();
    else say(response, 502, `what answers on port ${port} in the sandbox is no HTTP`);
  });
  pipeline(incoming, upstream, () => {});
}

async function relayUpgrade(
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  pass: Pass,
  { port, dial }: PreviewOptions,
): Promise<void> {
  const headers = { ...headersInside(incoming.headersDistinct, pass, port), ...upgradeOf(incoming.headers) };
  const upstream = await ask(incoming, headers, dial);
  if (!upstream || socket.destroyed) {
    upstream?.destroy();
    return sayRaw(socket, 502);
  }
  socket.once("close", () => upstream.destroy());
  upstream.once("upgrade", (answer, inside, rest) => {
    const changed = { ...headersOutside(answer.headersDistinct, pass, port), ...upgradeOf(answer.headers) };
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines(changed)}\r\n`);
    socket.write(rest);
    inside.write(head);
    join(socket, inside);
  });
  upstream.once("response", (answer) => {
    answer.resume();
    sayRaw(socket, answer.statusCode ?? 502);
  });
  upstream.once("error", () => socket.destroy());
  upstream.end();
}

/** The request as it goes on; nothing when nobody takes it. */
async function ask(incoming: IncomingMessage, headers: OutgoingHttpHeaders, dial: Dial) {
  const inside = await dial().catch(() => undefined);
  if (!inside) return undefined;
  try {
    const { method, url: path } = incoming;
    return request({ createConnection: () => inside, method, path, headers, setHost: false });
  } catch {
    // A path or a header that Node takes from a client and would not send itself.
    inside.destroy();
    return undefined;
  }
}

function say(response: ServerResponse, status: number, why: string): void {
  const type = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
  response.writeHead(status, { ...type, "cache-control": "no-store", connection: "close" }).end(`${why}\n`);
}

function sayRaw(socket: Duplex, status: number): void {
  socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

/** Node has parsed the values, so that none of them can hold a line break. */
function lines(headers: OutgoingHttpHeaders): string {
  return Object.entries(headers)
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`))
    .join("");
}
