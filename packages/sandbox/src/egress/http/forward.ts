import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import type { EgressDoor } from "../door.ts";
import type { Admitted, Client, Flow } from "../flow.ts";
import { over, receive, send } from "../relay.ts";
import { answer, answerRaw, toldBy } from "./answer.ts";
import { headBytes, type Pairs, pairsOf, passedOn, valuesOf } from "./headers.ts";

/** A plain request whose target was judged and whose Host names it. */
export interface Judged {
  target: Admitted;
  path: string;
}

/** Connections to the outside that belong to one connection of a program, and end with it. */
export class Upstreams {
  readonly #door: EgressDoor;
  readonly #client: Client;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8, keepAliveMsecs: 5000 });
  readonly #flows = new WeakMap<Duplex, Flow>();
  /** One that was opened before the first request was read. */
  #spare: Flow | undefined;

  constructor(door: EgressDoor, client: Client, spare?: Flow) {
    this.#door = door;
    this.#client = client;
    this.#spare = spare;
    if (spare) this.#flows.set(spare.socket, spare);
    this.#agent.createConnection = (options, done) => {
      const { target } = options as unknown as { target: Admitted };
      this.#open(target).then(
        (flow) => done?.(null, flow.socket),
        (error) => done?.(error, undefined as never),
      );
      return undefined;
    };
    client.stream.once("close", () => this.#agent.destroy());
  }

  /** A request to the judged target, over a connection to a judged address. */
  request(message: IncomingMessage, { target, path }: Judged, headers: Pairs): ClientRequest {
    const { host, port } = target;
    const options: RequestOptions & { target: Admitted } = {
      agent: this.#agent,
      // Only the key under which the agent keeps connections: what is dialled is decided by the target.
      host: host.name,
      port,
      method: message.method,
      path,
      headers: headers.flat() as unknown as Record<string, string>,
      setHost: false,
      target,
    };
    return httpRequest(options);
  }

  flowOf(socket: Duplex): Flow | undefined {
    return this.#flows.get(socket);
  }

  async #open(target: Admitted): Promise<Flow> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare && !spare.socket.destroyed) return spare;
    const flow = await this.#door.open(target, this.#client);
    this.#flows.set(flow.socket, flow);
    return flow;
  }
}

/** The headers as they leave: nothing about this connection, the secrets put in. */
export function leavingHeaders(door: EgressDoor, message: IncomingMessage, { target }: Judged): Pairs {
  const { host, port } = target;
  let pairs = passedOn(pairsOf(message));
  if (door.interceptor)
    pairs = door.interceptor.rewrite(host.name, port, pairs, (type, data) => door.decisions.tell(type, data));
  if (valuesOf(pairs, "host").length === 0) {
    const name = host.address?.family === 6 ? `[${host.name}]` : host.name;
    pairs = [["Host", port === 80 ? name : `${name}:${port}`], ...pairs];
  }
  const chunked = message.headers["transfer-encoding"] !== undefined;
  if (chunked) return [...pairs, ["Transfer-Encoding", "chunked"]];
  const sized = message.headers["content-length"] !== undefined;
  return sized || /^(GET|HEAD|DELETE|OPTIONS|TRACE)$/.test(message.method ?? "")
    ? pairs
    : [...pairs, ["Content-Length", "0"]];
}

/** Sends the request on and its response back. */
export function forward(
  door: EgressDoor,
  client: Client,
  upstreams: Upstreams,
  judged: Judged,
  message: IncomingMessage,
  response: ServerResponse,
): void {
  const headers = leavingHeaders(door, message, judged);
  const outgoing = upstreams.request(message, judged, headers);
  const flow = () => outgoing.socket && upstreams.flowOf(outgoing.socket);
  // Heads count as well: data can leave in them.
  outgoing.once("socket", () => flow()?.count("sent", headBytes(judged.path, headers)));
  const fail = (error: unknown) => answer(response, toldBy(error, door.sandboxId));
  outgoing.on("error", fail);
  client.lastActive = performance.now();
  message.on("data", (chunk: Buffer) => {
    flow()?.count("sent", chunk.length);
    if (!outgoing.write(chunk)) {
      message.pause();
      outgoing.once("drain", () => message.resume());
    }
  });
  message.on("end", () => outgoing.end());
  response.on("close", () => {
    if (!response.writableFinished) outgoing.destroy();
  });
  outgoing.on("response", (incoming) => {
    flow()?.count("received", headBytes(incoming.statusMessage ?? "", pairsOf(incoming)));
    response.sendDate = false;
    response.writeHead(
      incoming.statusCode!,
      incoming.statusMessage ?? "",
      passedOn(pairsOf(incoming)).flat(),
    );
    incoming.on("data", (chunk: Buffer) => {
      flow()?.count("received", chunk.length);
      if (!response.write(chunk)) {
        incoming.pause();
        response.once("drain", () => incoming.resume());
      }
    });
    incoming.on("end", () => response.end());
    incoming.on("error", () => response.destroy());
    incoming.on("close", () => {
      if (!incoming.complete) response.destroy();
    });
  });
}

/** A request for WebSocket: when the server agrees, the connection is the program's own. */
export function upgrade(
  door: EgressDoor,
  client: Client,
  upstreams: Upstreams,
  judged: Judged,
  message: IncomingMessage,
): void {
  const { stream } = client;
  const headers = leavingHeaders(door, message, judged);
  const outgoing = upstreams.request(message, judged, [
    ...headers,
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
  ]);
  outgoing.on("error", (error) => answerRaw(stream, toldBy(error, door.sandboxId)));
  outgoing.on("upgrade", (incoming, socket, head) => {
    const flow = upstreams.flowOf(socket)!;
    writeHead(stream, incoming, [
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
    ]);
    if (head.length > 0) socket.unshift(head);
    receive(stream, flow);
    send(stream, flow);
    void over(stream, flow.socket);
  });
  outgoing.on("response", (incoming) => {
    writeHead(stream, incoming, [["Connection", "close"]]);
    incoming.pipe(stream);
  });
  outgoing.end();
}

function writeHead(stream: Duplex, incoming: IncomingMessage, more: Pairs): void {
  const lines = [...passedOn(pairsOf(incoming)), ...more].map(([name, value]) => `${name}: ${value}\r\n`);
  stream.write(
    `HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}\r\n${lines.join("")}\r\n`,
    "latin1",
  );
}
