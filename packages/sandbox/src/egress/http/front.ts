// HTTP as programs speak it to a proxy, or to a server that we stand in for. Node's own parser reads it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { EgressDoor } from "../door.ts";
import type { Admitted, Client, Flow } from "../flow.ts";
import { canonicalHost, splitAuthority } from "../host.ts";
import { Refusal } from "../refusal.ts";
import { tunnel } from "../tunnel.ts";
import { answer, answerRaw, toldBy } from "./answer.ts";
import { forward, type Judged, Upstreams, upgrade } from "./forward.ts";
import { ambiguity, namesTarget, pairsOf, valuesOf } from "./headers.ts";

interface Visit {
  client: Client;
  upstreams: Upstreams;
  /** The only target, where the program does not know of a proxy. */
  fixed: Admitted | undefined;
}

const maxHeaderBytes = 64 * 1024;

export class HttpFront {
  readonly #door: EgressDoor;
  readonly #visits = new WeakMap<Duplex, Visit>();
  #server: Server | undefined;

  constructor(door: EgressDoor) {
    this.#door = door;
  }

  /** Reads requests from a program's connection: to any target, or to the one that is fixed. */
  serve(client: Client, fixed?: Admitted, opened?: Flow): void {
    this.#visits.set(client.stream, { client, fixed, upstreams: new Upstreams(this.#door, client, opened) });
    this.#server ??= this.#makeServer();
    this.#server.emit("connection", client.stream);
    // Whoever looked at it before may have left it paused.
    client.stream.resume();
  }

  #makeServer(): Server {
    const server = createServer({ maxHeaderSize: maxHeaderBytes, keepAliveTimeout: 0, requestTimeout: 0 });
    server.on("request", (message, response) => void this.#request(message, response));
    server.on("checkContinue", (message, response) => {
      response.writeContinue();
      void this.#request(message, response);
    });
    server.on("connect", (message, stream, head) => void this.#connect(message, stream as Duplex, head));
    server.on("upgrade", (message, stream, head) => void this.#upgrade(message, stream as Duplex, head));
    server.on("clientError", (error: NodeJS.ErrnoException, stream) =>
      this.#malformed(error, stream as Duplex),
    );
    return server;
  }

  async #request(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const visit = this.#visits.get(message.socket);
    if (!visit) return void response.destroy();
    try {
      const judged = await this.#judge(message, visit);
      forward(this.#door, visit.client, visit.upstreams, judged, message, response);
    } catch (error) {
      answer(response, toldBy(error, this.#door.sandboxId));
    }
  }

  async #upgrade(message: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const visit = this.#visits.get(stream);
    if (!visit) return void stream.destroy();
    try {
      if (message.headers.upgrade?.toLowerCase() !== "websocket")
        throw this.#told(visit, Refusal.because("upgrade", "a plain connection can only become a WebSocket"));
      const judged = await this.#judge(message, visit);
      if (head.length > 0) stream.unshift(head);
      upgrade(this.#door, visit.client, visit.upstreams, judged, message);
    } catch (error) {
      answerRaw(stream, toldBy(error, this.#door.sandboxId));
    }
  }

  async #connect(message: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const visit = this.#visits.get(stream);
    if (!visit) return void stream.destroy();
    const { client, fixed } = visit;
    let ready = false;
    try {
      if (fixed)
        throw this.#told(visit, Refusal.because("proxy request", "a server was asked to be a proxy"));
      const authority = splitAuthority(message.url ?? "");
      if (!authority) throw this.#told(visit, notATarget());
      const { host, port } = authority;
      const pairs = pairsOf(message);
      const wrong = this.#mismatch(pairs, canonicalHost(host)?.name ?? "", port, port);
      if (wrong) throw this.#told(visit, wrong, host, port);
      const target = await this.#door.admit(host, port, "connect", client);
      if (head.length > 0) stream.unshift(head);
      await tunnel(this.#door, client, target, () => {
        ready = true;
        stream.write("HTTP/1.1 200 Connection established\r\n\r\n");
      });
    } catch (error) {
      if (ready) stream.destroy();
      else answerRaw(stream, toldBy(error, this.#door.sandboxId));
    }
  }

  /** Whom a plain request is for: the same verdict as for a tunnel, and its Host must say the same. */
  async #judge(message: IncomingMessage, visit: Visit): Promise<Judged> {
    const pairs = pairsOf(message);
    const { fixed, client } = visit;
    const asked = fixed
      ? { host: fixed.host.name, port: fixed.port, path: message.url ?? "" }
      : absolute(message.url ?? "");
    if (!asked || (fixed && !/^(\/|\*$)/.test(asked.path))) throw this.#told(visit, notATarget());
    const { host, port, path } = asked;
    const wrong = this.#mismatch(pairs, canonicalHost(host)?.name ?? "", port, 80);
    if (wrong) throw this.#told(visit, wrong, host, port);
    return { target: fixed ?? (await this.#door.admit(host, port, "http", client)), path };
  }

  #mismatch(
    pairs: ReturnType<typeof pairsOf>,
    name: string,
    port: number,
    defaultPort: number,
  ): Refusal | undefined {
    const why = ambiguity(pairs);
    if (why) return Refusal.because("ambiguous request", `the request could be read in two ways: ${why}`);
    const [host] = valuesOf(pairs, "host");
    if (namesTarget(host, name, port, defaultPort)) return undefined;
    return Refusal.because(
      "host header",
      `a request to ${name}:${port} names another host in its Host header`,
    );
  }

  #malformed(error: NodeJS.ErrnoException, stream: Duplex): void {
    const visit = this.#visits.get(stream);
    if (visit && error.code?.startsWith("HPE_"))
      this.#told(
        visit,
        Refusal.because("malformed request", `the request is not valid HTTP (${error.code})`),
      );
    if (stream.writable && !stream.destroyed)
      answerRaw(stream, { status: 400, line: "caisson: the request is not valid HTTP" });
    else stream.destroy();
  }

  /** Records a refusal that no rule is the reason of. */
  #told({ fixed }: Visit, refusal: Refusal, host = fixed?.host.name ?? "", port = fixed?.port ?? 0): Refusal {
    const name = canonicalHost(host)?.name ?? "";
    this.#door.decisions.refused({ name, port, via: fixed?.via ?? "http" }, refusal);
    return refusal;
  }
}

function notATarget(): Refusal {
  return Refusal.because("not a host", "the request names no target that can be judged");
}

/** The target of a request to a proxy. Nothing is repaired: user information, other schemes and the like are no target. */
function absolute(url: string): { host: string; port: number; path: string } | undefined {
  const match = /^http:\/\/([^/?#]*)([^#]*)$/i.exec(url);
  const authority = match && splitAuthority(match[1]!, 80);
  if (!authority) return undefined;
  const rest = match[2]!;
  return { ...authority, path: rest.startsWith("/") ? rest : `/${rest}` };
}
