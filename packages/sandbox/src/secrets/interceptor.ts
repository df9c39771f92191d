// Stands between a program and a host that gets secrets: opens the program's TLS with the sandbox's own authority, and
// speaks to the host with TLS that is verified. Node reads and writes both sides.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { canonicalHost } from "../egress/host.ts";
import { ambiguity, namesTarget, pairsOf, valuesOf } from "../egress/http/headers.ts";
import { Refusal } from "../egress/refusal.ts";
import type { Interceptor, JudgedTarget, Report } from "../egress/seams.ts";
import type { Authority } from "./authority.ts";
import { type Exchange, forward, switchProtocols } from "./forward.ts";
import { serveHttp2 } from "./http2/serve.ts";
import { type Injector, newTally, type Tally } from "./injector.ts";
import { Passage } from "./passing.ts";
import { Upstream } from "./upstream.ts";

const maxHeaderBytes = 64 * 1024;
const handshakeWithinMs = 15_000;
/** In this order: HTTP/2 is for programs that know nothing else; the others speak HTTP/1.1, which carries the same requests. */
const protocols = ["http/1.1", "h2"];

interface Visit {
  target: JudgedTarget;
  upstream: Upstream;
  newPassage(): Passage;
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
      ALPNCallback: ({ protocols: offered }) => agree(offered, target),
      // The name inside must be the one that was judged.
      SNICallback: (name, done) =>
        sameHost(name, target.name) ? done(null) : done(new Error("another server name")),
    });
    const over = new Promise<void>((resolve) => secure.once("close", () => resolve()));
    secure.on("error", () => secure.destroy());
    client.once("close", () => secure.destroy());
    const timer = setTimeout(() => secure.destroy(), handshakeWithinMs).unref();
    secure.once("secure", () => {
      clearTimeout(timer);
      this.#speak(secure, target, teller(target, report));
    });
    await over;
    clearTimeout(timer);
    client.destroy();
  };

  /** `tell`: of each secret once per connection. */
  #speak(secure: TLSSocket, target: JudgedTarget, tell: (tally: Tally) => void): void {
    const { name, port } = target;
    const newPassage = () => new Passage({ name, port, tls: true }, this.#injector, tell);
    if (secure.alpnProtocol === "h2") {
      serveHttp2(secure, target, this.#roots, newPassage);
      return;
    }
    const upstream = new Upstream(target, this.#roots);
    secure.once("close", () => upstream.close());
    this.#visits.set(secure, { target, upstream, newPassage });
    this.#server.emit("connection", secure);
  }

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
    if (!visit) return undefined;
    const { target, upstream, newPassage } = visit;
    const pairs = pairsOf(message);
    const why = ambiguity(pairs);
    const [host] = valuesOf(pairs, "host");
    if (why || !/^[/*]/.test(message.url ?? ""))
      target.refused(
        Refusal.because(
          "ambiguous request",
          `the request could be read in two ways: ${why ?? "its target is no path"}`,
        ),
      );
    else if (host === undefined || !namesTarget(host, target.name, target.port, 443))
      target.refused(
        Refusal.because("host header", `a request to ${target.name}:${target.port} names another host`),
      );
    else return { passage: newPassage(), upstream };
    return undefined;
  }
}

/** The protocol that is spoken; none where a program offers others alone, which ends the handshake. */
function agree(offered: readonly string[], target: JudgedTarget): string | undefined {
  const agreed = protocols.find((protocol) => offered.includes(protocol));
  if (agreed === undefined)
    target.refused(
      Refusal.because(
        "protocol",
        `connections to ${target.name} are opened for secrets, and only HTTP can be`,
      ),
    );
  return agreed;
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
