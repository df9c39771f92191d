// Stands between a program and a host that gets secrets: opens the program's TLS with the sandbox's own authority, and
// speaks to the host with TLS that is verified. Node reads and writes both sides.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { canonicalHost } from "../egress/host.ts";
import { ambiguity, namesTarget, pairsOf, valuesOf } from "../egress/http/headers.ts";
import type { Interceptor, JudgedTarget, Report } from "../egress/seams.ts";
import type { Authority } from "./authority.ts";
import { type Exchange, forward, switchProtocols } from "./forward.ts";
import { type Injector, newTally, type Tally } from "./injector.ts";
import { Upstream } from "./upstream.ts";

const maxHeaderBytes = 64 * 1024;
const handshakeWithinMs = 15_000;
/** HTTP/2 is not offered: programs then speak HTTP/1.1, which carries the same requests. */
const protocols = ["http/1.1"];

interface Visit {
  target: JudgedTarget;
  upstream: Upstream;
  /** Tells of each secret once per connection. */
  tell(tally: Tally): void;
}

export class SecretInterceptor implements Interceptor {
  readonly #injector: Injector;
  readonly #authority: Authority;
  readonly #roots: readonly string[];
  readonly #visits = new WeakMap<Duplex, Visit>();
  readonly #server: Server;

  /** `roots`: whom hosts are verified with, as PEM. */
  constructor(injector: Injector, authority: Authority, roots: readonly string[]) {
    this.#injector = injector;
    this.#authority = authority;
    this.#roots = roots;
    this.#server = createServer({ maxHeaderSize: maxHeaderBytes, keepAliveTimeout: 0, requestTimeout: 0 });
    this.#server.on("request", (message, response) => this.#request(message, response));
    this.#server.on("checkContinue", (message, response) => {
      response.writeContinue();
      this.#request(message, response);
    });
    this.#server.on("upgrade", (message, socket, head) => this.#upgrade(message, socket as Duplex, head));
    this.#server.on("connect", (_message, socket) => socket.destroy());
    this.#server.on("clientError", (_error, socket) => socket.destroy());
  }

  wants: Interceptor["wants"] = (name, port) => this.#injector.wants(name, port);

  rewrite: Interceptor["rewrite"] = (name, port, headers, report) => {
    const tally = newTally();
    const pairs = this.#injector.headers(headers, { name, port, tls: false }, tally);
    teller({ name, port }, report)(tally);
    return pairs;
  };

  serve: Interceptor["serve"] = async (client, target, report) => {
    const secure = new TLSSocket(client, {
      isServer: true,
      secureContext: this.#authority.contextFor(target.name),
      ALPNProtocols: protocols,
      // The name inside must be the one that was judged.
      SNICallback: (name, done) =>
        sameHost(name, target.name) ? done(null) : done(new Error("another server name")),
    });
    const upstream = new Upstream(target, this.#roots);
    const over = new Promise<void>((resolve) => secure.once("close", () => resolve()));
    secure.on("error", () => secure.destroy());
    client.once("close", () => secure.destroy());
    const timer = setTimeout(() => secure.destroy(), handshakeWithinMs).unref();
    secure.once("secure", () => {
      clearTimeout(timer);
      this.#visits.set(secure, { target, upstream, tell: teller(target, report) });
      this.#server.emit("connection", secure);
    });
    await over;
    clearTimeout(timer);
    upstream.close();
    client.destroy();
  };

  #request(message: IncomingMessage, response: ServerResponse): void {
    const exchange = this.#exchange(message, message.socket);
    if (!exchange) {
      response.writeHead(421, { "Content-Type": "text/plain", Connection: "close" });
      response.end("caisson: the request names another host than its connection\n");
      return;
    }
    forward(exchange, message, response);
  }

  #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): void {
    const exchange = this.#exchange(message, socket);
    if (!exchange) {
      socket.destroy();
      return;
    }
    if (head.length > 0) socket.unshift(head);
    switchProtocols(exchange, message, socket);
  }

  /** Host must be the judged name, and the request must have one meaning only. */
  #exchange(message: IncomingMessage, socket: Duplex): Exchange | undefined {
    const visit = this.#visits.get(socket);
    const pairs = pairsOf(message);
    if (!visit || ambiguity(pairs) || !/^[/*]/.test(message.url ?? "")) return undefined;
    const { name, port } = visit.target;
    const [host] = valuesOf(pairs, "host");
    if (host === undefined || !namesTarget(host, name, port, 443)) return undefined;
    const to = { name, port, tls: true };
    return { to, upstream: visit.upstream, injector: this.#injector, tell: visit.tell };
  }
}

function teller(target: { name: string; port: number }, report: Report): (tally: Tally) => void {
  const told = new Set<string>();
  return ({ used, stripped }) => {
    for (const [type, secrets] of [
      ["secret.used", used],
      ["secret.stripped", stripped],
    ] as const) {
      for (const secret of secrets) {
        if (told.has(`${type} ${secret}`)) continue;
        told.add(`${type} ${secret}`);
        report(type, { secret, name: target.name, port: target.port });
      }
    }
  };
}

function sameHost(a: string, b: string): boolean {
  return canonicalHost(a)?.name === canonicalHost(b)?.name;
}
