import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { type Pairs as HeaderPairs, pairsOf, passedOn } from "../egress/http/headers.ts";
import { readable } from "./decoding.ts";
import { type Destination, type Injector, newTally, type Pairs, type Tally } from "./injector.ts";
import { type Replacement, Replacing, replaceAll } from "./replacing.ts";
import type { Upstream } from "./upstream.ts";

/** One request of a program to a host that gets secrets. */
export interface Exchange {
  to: Destination;
  upstream: Upstream;
  injector: Injector;
  tell(tally: Tally): void;
}

/** A body up to this size is held until it is complete, so that its length can be told. */
const heldBytes = 1024 * 1024;

const unreachable = "the host could not be reached, or its certificate is not to be trusted";

/** Sends a request on with its secrets, and its answer back without them. */
export function forward(exchange: Exchange, message: IncomingMessage, response: ServerResponse): void {
  const { to, upstream, injector } = exchange;
  const tally = newTally();
  const send = (headers: Pairs) => {
    const path = injector.path(message.url ?? "/", to, tally);
    const outgoing = upstream.request(message.method ?? "GET", path, headers);
    outgoing.on("error", () => fail(response, unreachable));
    outgoing.on("response", (incoming) =>
      answer(exchange, tally, [message.method ?? "", incoming], response),
    );
    response.on("close", () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    return outgoing;
  };
  const headers = leaving(exchange, message, tally);
  exchange.tell(tally);
  const replacements = replacementsFor(exchange, message, tally);
  const length = message.headers["content-length"];
  const chunked = message.headers["transfer-encoding"] !== undefined;
  if (length === undefined && !chunked) {
    message.resume();
    send(sized(headers, message.method ?? "GET")).end();
  } else if (replacements.list.length === 0) {
    pipeline(message, send(chunked ? withChunks(headers) : headers), () => {});
  } else if (!chunked && Number(length) <= heldBytes) {
    void whole(message).then(
      (body) => {
        const filled = replaceAll(body, replacements.list, replacements.found);
        exchange.tell(tally);
        send([...without(headers, "content-length"), ["Content-Length", String(filled.length)]]).end(filled);
      },
      () => response.destroy(),
    );
  } else {
    const found: typeof replacements.found = (replacement) => {
      replacements.found(replacement);
      exchange.tell(tally);
    };
    const outgoing = send(withChunks(without(headers, "content-length")));
    pipeline(message, new Replacing(replacements.list, found), outgoing, () => {});
  }
}

/** A WebSocket, say: once the host agrees, the bytes are the program's own. */
export function switchProtocols(exchange: Exchange, message: IncomingMessage, client: Duplex): void {
  const { to, upstream, injector } = exchange;
  const tally = newTally();
  const upgrade: Pairs = [
    ["Connection", "Upgrade"],
    ["Upgrade", message.headers.upgrade ?? ""],
  ];
  const headers = [...leaving(exchange, message, tally), ...upgrade];
  exchange.tell(tally);
  const outgoing = upstream.request("GET", injector.path(message.url ?? "/", to, tally), headers);
  outgoing.on("error", () => client.destroy());
  outgoing.on("upgrade", (incoming, socket, head) => {
    const masks = injector.masks(to, tally);
    writeHead(client, incoming, [...cleaned(incoming, masks), ...upgrade]);
    if (head.length > 0) socket.unshift(head);
    pipeline(client, socket, () => {});
    pipeline(socket, new Replacing(masks), client, () => {});
  });
  outgoing.on("response", (incoming) => {
    const masks = injector.masks(to, tally);
    writeHead(client, incoming, [...cleaned(incoming, masks), ["Connection", "close"]]);
    pipeline(incoming, new Replacing(masks), client, () => {});
  });
  outgoing.end();
}

function answer(
  exchange: Exchange,
  tally: Tally,
  [method, incoming]: [string, IncomingMessage],
  response: ServerResponse,
): void {
  const masks = exchange.injector.masks(exchange.to, tally);
  const body = readable(incoming, method);
  if (!body) {
    incoming.destroy();
    fail(response, "the host's answer is encoded in a way that cannot be looked through");
    return;
  }
  const headers = cleaned(incoming, masks);
  response.sendDate = false;
  response.writeHead(
    incoming.statusCode ?? 502,
    masked(incoming.statusMessage ?? "", masks),
    (body.decoded ? without(without(headers, "content-encoding"), "content-length") : headers).flat(),
  );
  pipeline(incoming, body.decoder, new Replacing(masks), response, (error) => {
    if (error) response.destroy();
  });
}

/** Headers as they leave. The answer is asked for uncompressed, so that it can be looked through. */
function leaving({ injector, to }: Exchange, message: IncomingMessage, tally: Tally): Pairs {
  const pairs = injector.headers(passedOn(pairsOf(message)), to, tally);
  const unwanted = ["accept-encoding", "expect"];
  // Asked for in parts, an answer that holds a value would hold it in none of them.
  if (tally.used.size > 0) unwanted.push("range", "if-range");
  const kept = pairs.filter(([name]) => !unwanted.includes(name.toLowerCase()));
  return [...kept, ["Accept-Encoding", "identity"]];
}

function cleaned(incoming: IncomingMessage, masks: readonly Replacement[]): HeaderPairs {
  return passedOn(pairsOf(incoming)).map(([name, value]) => [name, masked(value, masks)]);
}

/** Header bytes are Latin-1; values are found by their bytes. */
function masked(text: string, masks: readonly Replacement[]): string {
  return replaceAll(Buffer.from(text, "latin1"), masks).toString("latin1");
}

function replacementsFor(
  { injector, to }: Exchange,
  message: IncomingMessage,
  tally: Tally,
): { list: Replacement[]; found(replacement: Replacement): void } {
  if (message.headers["content-encoding"] !== undefined) return { list: [], found: () => {} };
  const wanted = injector.body(message.headers["content-type"] ?? "", to);
  return {
    list: wanted.map(({ replacement }) => replacement),
    found: (replacement) => {
      const { secret, puts } = wanted.find((each) => each.replacement === replacement)!;
      (puts ? tally.used : tally.stripped).add(secret);
    },
  };
}

function sized(headers: Pairs, method: string): Pairs {
  return /^(GET|HEAD|DELETE|OPTIONS|TRACE)$/.test(method) ? headers : [...headers, ["Content-Length", "0"]];
}

function withChunks(headers: Pairs): Pairs {
  return [...headers, ["Transfer-Encoding", "chunked"]];
}

function without(pairs: Pairs, name: string): Pairs {
  return pairs.filter(([key]) => key.toLowerCase() !== name);
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

function writeHead(client: Duplex, incoming: IncomingMessage, pairs: HeaderPairs): void {
  const lines = pairs.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  client.write(`HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}\r\n${lines}\r\n`, "latin1");
}
