// A connection whose target is settled and whose bytes are the program's own: what it begins with decides whether
// the names inside can be compared with the judged one.
import type { Duplex } from "node:stream";
import type { EgressDoor } from "./door.ts";
import { type Beginning, lookAtBeginning } from "./first-bytes.ts";
import { FirstLine } from "./first-line.ts";
import type { Admitted, Client, Flow } from "./flow.ts";
import { canonicalHost } from "./host.ts";
import { relayWatched } from "./http/watched.ts";
import { meter } from "./meter.ts";
import { Refusal } from "./refusal.ts";
import { over, receive, send } from "./relay.ts";

/**
 * Connects and relays; resolves when it is over. `ready` tells the program that its target is reached.
 * Rejects with a Failure before that. */
export async function tunnel(
  door: EgressDoor,
  client: Client,
  target: Admitted,
  ready: () => void,
): Promise<void> {
  const { stream } = client;
  const wanted = door.interceptor?.wants(target.host.name, target.port) ?? false;
  const flow = wanted ? undefined : await door.open(target, client);
  ready();
  if (flow) {
    // While the program is looked at, a server that speaks first is listened to.
    await somebodySpeaks(stream, flow.socket);
    if (flow.socket.readableLength > 0 || flow.socket.readableEnded) {
      receive(stream, flow);
      const { protocol } = await check(door, client, target, flow);
      sendOn(protocol, door, client, target, flow);
      return over(stream, flow.socket);
    }
  }
  const beginning = await check(door, client, target, flow);
  if (beginning.protocol === "http") {
    // Where secrets are put in, every request is rewritten; otherwise it is only looked at.
    if (flow && !door.interceptor) return relayWatched(door, client, target, flow);
    return door.serveHttp(client, target, flow);
  }
  if (beginning.protocol === "tls" && wanted) {
    const dial = async () => {
      const flow = await door.open(target, client);
      meter(flow);
      return flow.socket;
    };
    const told = { name: target.host.name, port: target.port, via: target.via };
    const judged = {
      name: told.name,
      port: told.port,
      tls: true,
      dial,
      refused: (refusal: Refusal) => door.decisions.refused(told, refusal),
      failed: (reason: string) => door.decisions.failed({ ...told, rule: target.rule }, reason),
    };
    return door.interceptor!.serve(stream, judged, (type, data) => door.decisions.tell(type, data));
  }
  const open = flow ?? (await door.open(target, client));
  receive(stream, open);
  sendOn(beginning.protocol, door, client, target, open);
  return over(stream, open.socket);
}

/** What began as no HTTP may not have had a whole line yet: it must not become a request that nobody compared. */
function sendOn(
  protocol: Beginning["protocol"],
  door: EgressDoor,
  { stream }: Client,
  { host, port, via }: Admitted,
  flow: Flow,
): void {
  if (protocol === "tls") {
    send(stream, flow);
    return;
  }
  const line = new FirstLine();
  const look = (chunk: Buffer) => {
    const found = line.feed(chunk);
    if (found === "more") return;
    stream.off("data", look);
    if (found !== "http") return;
    const reason = "the connection began otherwise and then became HTTP";
    door.decisions.refused({ name: host.name, port, via }, Refusal.because("malformed request", reason));
    door.cut(flow, reason);
  };
  // Before whoever passes it on: what is cut is not written any more.
  stream.on("data", look);
  send(stream, flow);
}

/** Compares the name in the program's first bytes; on another one, cuts and rejects. */
async function check(
  door: EgressDoor,
  client: Client,
  target: Admitted,
  flow: Flow | undefined,
): Promise<Beginning> {
  let beginning: Beginning;
  try {
    beginning = await lookAtBeginning(client.stream);
  } catch (error) {
    flow?.socket.destroy();
    throw error;
  }
  const refusal = against(door, target, beginning);
  if (!refusal) return beginning;
  const { host, port, via } = target;
  door.decisions.refused({ name: host.name, port, via }, refusal);
  if (flow) door.cut(flow, refusal.message);
  client.stream.destroy();
  throw refusal;
}

function against(door: EgressDoor, { host, port }: Admitted, beginning: Beginning): Refusal | undefined {
  if (beginning.protocol === "broken")
    return Refusal.because("malformed TLS", "the connection begins like TLS and is not");
  if (beginning.protocol !== "tls") return undefined;
  const { serverName, encrypted } = beginning.hello;
  if (encrypted && door.comparesNames && !door.interceptor?.wants(host.name, port))
    return Refusal.because(
      "encrypted server name",
      `TLS to ${host.name} hides its server name (ECH), which cannot be judged`,
    );
  if (serverName === undefined)
    return host.address
      ? undefined
      : Refusal.because("no server name", `TLS to ${host.name} names no server (SNI)`);
  const named = canonicalHost(serverName);
  if (named && !named.address && host.address && door.allowsName(named.name, port)) return undefined;
  if (named?.name === host.name) return undefined;
  return Refusal.because(
    "server name",
    `TLS to ${host.name} names another server: ${named?.name ?? "not a name"}`,
    named && !named.address ? `${named.name}:${port}` : undefined,
  );
}

/** Resolves when one of them has something to read, or never will have. */
function somebodySpeaks(...streams: Duplex[]): Promise<void> {
  if (streams.some((stream) => stream.readableLength > 0 || stream.readableEnded || stream.destroyed))
    return Promise.resolve();
  const events = ["readable", "end", "close", "error"] as const;
  return new Promise((resolve) => {
    const done = () => {
      for (const stream of streams) for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const stream of streams) for (const event of events) stream.on(event, done);
  });
}
