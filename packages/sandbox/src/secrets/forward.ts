import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { type Pairs, pairsOf } from "../egress/http/headers.ts";
import { readable } from "./decoding.ts";
import { cleaned, masked, type Passage, without } from "./passing.ts";
import { Replacing, replaceAll } from "./replacing.ts";
import type { Upstream } from "./upstream.ts";

/** One request of a program in HTTP/1.1. */
export interface Exchange {
  passage: Passage;
  upstream: Upstream;
}

/** A body up to this size is held until it is complete, so that its length can be told. */
const heldBytes = 1024 * 1024;

/** Sends a request on with its secrets, and its answer back without them. */
export function forward(exchange: Exchange, message: IncomingMessage, response: ServerResponse): void {
  const { passage, upstream } = exchange;
  const path = passage.path(message.url ?? "/");
  const send = (headers: Pairs) => {
    const outgoing = upstream.request(message.method ?? "GET", path, headers);
    outgoing.on("error", () => fail(response, upstream.unreachable));
    outgoing.on("response", (incoming) => answer(passage, message.method ?? "", incoming, response));
    response.on("close", () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    return outgoing;
  };
  const headers = passage.headers(pairsOf(message));
  const body = passage.body(message.headers["content-type"], message.headers["content-encoding"]);
  const length = message.headers["content-length"];
  const chunked = message.headers["transfer-encoding"] !== undefined;
  if (length === undefined && !chunked) {
    message.resume();
    send(sized(headers, message.method ?? "GET")).end();
  } else if (body.list.length === 0) {
    pipeline(message, send(chunked ? withChunks(headers) : headers), () => {});
  } else if (!chunked && Number(length) <= heldBytes) {
    void whole(message).then(
      (bytes) => {
        const filled = replaceAll(bytes, body.list, body.found);
        send([...without(headers, "content-length"), ["Content-Length", String(filled.length)]]).end(filled);
      },
      () => response.destroy(),
    );
  } else {
    const outgoing = send(withChunks(without(headers, "content-length")));
    pipeline(message, new Replacing(body.list, body.found), outgoing, () => {});
  }
}

/** A WebSocket, say: once the host agrees, the bytes are the program's own. */
export function switchProtocols(exchange: Exchange, message: IncomingMessage, client: Duplex): void {
  const { passage, upstream } = exchange;
  const upgrade: Pairs = [
    ["Connection", "Upgrade"],
    ["Upgrade", message.headers.upgrade ?? ""],
  ];
  const path = passage.path(message.url ?? "/");
  const outgoing = upstream.request("GET", path, [...passage.headers(pairsOf(message)), ...upgrade]);
  outgoing.on("error", () => client.destroy());
  outgoing.on("upgrade", (incoming, socket, head) => {
    const masks = passage.masks();
    writeHead(client, incoming, [...cleaned(pairsOf(incoming), masks), ...upgrade]);
    if (head.length > 0) socket.unshift(head);
    pipeline(client, socket, () => {});
    pipeline(socket, new Replacing(masks), client, () => {});
  });
  outgoing.on("response", (incoming) => {
    const masks = passage.masks();
    writeHead(client, incoming, [...cleaned(pairsOf(incoming), masks), ["Connection", "close"]]);
    pipeline(incoming, new Replacing(masks), client, () => {});
  });
  outgoing.end();
}

function answer(passage: Passage, method: string, incoming: IncomingMessage, response: ServerResponse): void {
  const masks = passage.masks();
  const status = incoming.statusCode ?? 502;
  const body = readable(incoming.headers["content-encoding"], status, method);
  if (!body) {
    incoming.destroy();
    fail(response, "the host's answer is encoded in a way that cannot be looked through");
    return;
  }
  const headers = cleaned(pairsOf(incoming), masks);
  response.sendDate = false;
  response.writeHead(
    status,
    masked(incoming.statusMessage ?? "", masks),
    (body.decoded ? without(headers, "content-encoding", "content-length") : headers).flat(),
  );
  pipeline(incoming, body.decoder, new Replacing(masks), response, (error) => {
    if (error) response.destroy();
  });
}

function sized(headers: Pairs, method: string): Pairs {
  return /^(GET|HEAD|DELETE|OPTIONS|TRACE)$/.test(method) ? headers : [...headers, ["Content-Length", "0"]];
}

function withChunks(headers: Pairs): Pairs {
  return [...headers, ["Transfer-Encoding", "chunked"]];
}

async function whole(message: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of message) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** What went wrong may name what was sent: the program is told no more than that. */
function fail(response: ServerResponse, why: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(502, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  response.end(`caisson: ${why}\n`);
}

function writeHead(client: Duplex, incoming: IncomingMessage, pairs: Pairs): void {
  const lines = pairs.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  client.write(`HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}\r\n${lines}\r\n`, "latin1");
}
