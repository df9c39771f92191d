// The one way out of a sandbox. Every connection that a program makes ends here, is judged, and goes on from here.
import type { Socket } from "node:net";
import type { GuestConnection } from "../link/guest.ts";
import { Asking } from "./asking.ts";
import { Decisions, type Keep } from "./decisions.ts";
import { dial } from "./dial.ts";
import { peek } from "./first-bytes.ts";
import type { Admitted, Client, Flow, Via } from "./flow.ts";
import { canonicalHost } from "./host.ts";
import { HttpFront } from "./http/front.ts";
import { type EgressLimits, Rate } from "./limits.ts";
import type { Policy } from "./policy.ts";
import { asRefusalOrFailure, Failure, Refusal, toFailure } from "./refusal.ts";
import type { NameResolver } from "./resolver.ts";
import type { Ask, Interceptor } from "./seams.ts";
import { serveSocks } from "./socks.ts";
import { tunnel } from "./tunnel.ts";

export interface DoorParts {
  sandboxId: string;
  policy: Policy;
  limits: EgressLimits;
  resolver: NameResolver;
  /** Appends events to the log; nobody waits for it. */
  keep: Keep;
  /** Bytes that passed before, under an earlier daemon. */
  passed?: number;
  ask?: Ask;
  interceptor?: Interceptor;
}

const sweepMs = 1000;
/** How long a connection may go on sending after its program has gone. */
const lingerMs = 30_000;

export class EgressDoor {
  readonly sandboxId: string;
  readonly interceptor: Interceptor | undefined;
  readonly decisions: Decisions;
  readonly #resolver: NameResolver;
  readonly #asking: Asking | undefined;
  readonly #clients = new Set<Client>();
  readonly #flows = new Set<Flow>();
  readonly #rate = new Rate();
  readonly #http: HttpFront;
  #policy: Policy;
  #limits: EgressLimits;
  #sent = 0;
  #received = 0;
  #passed: number;
  #lastFlow = 0;
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(parts: DoorParts) {
    this.sandboxId = parts.sandboxId;
    this.interceptor = parts.interceptor;
    this.decisions = new Decisions(parts.sandboxId, parts.keep);
    this.#policy = parts.policy;
    this.#limits = parts.limits;
    this.#resolver = parts.resolver;
    this.#passed = parts.passed ?? 0;
    this.#asking = parts.ask && new Asking(parts.sandboxId, parts.ask);
    this.#http = new HttpFront(this);
  }

  get usage(): { connections: number; sent: number; received: number } {
    return { connections: this.#flows.size, sent: this.#sent, received: this.#received };
  }

  get limits(): EgressLimits {
    return this.#limits;
  }

  /** Takes over a connection of the sandbox. Never throws. */
  handle(connection: GuestConnection): void {
    const { stream, kind, name, port } = connection;
    stream.on("error", () => {});
    const refusal = this.#overLimit();
    if (refusal || this.#closed) {
      const via = kind === "proxy" ? "connect" : "transparent";
      if (refusal) this.decisions.refused({ name: shown(name), port, via }, refusal);
      stream.destroy();
      return;
    }
    const client: Client = { stream, flows: new Set(), lastActive: performance.now() };
    this.#clients.add(client);
    stream.once("close", () => this.#leave(client));
    this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs).unref();
    const served = kind === "proxy" ? this.#serveProxy(client) : this.#serveTransparent(client, name, port);
    served.catch(() => stream.destroy());
  }

  /** Judges a target by name and by address, asking if need be; rejects with a Refusal or a Failure. */
  async admit(text: string, port: number, via: Via, client: Client): Promise<Admitted> {
    try {
      return await this.#admit(text, port, via, client);
    } catch (thrown) {
      const error = asRefusalOrFailure(thrown, shown(text));
      const target = { name: shown(text), port, via };
      if (error instanceof Refusal) this.decisions.refused(target, error);
      else this.decisions.failed(target, error.message);
      throw error;
    }
  }

  /** Connects to what was admitted, and records that. */
  async open(target: Admitted, client: Client): Promise<Flow> {
    const { host, port } = target;
    const signal = this.#connectSignal(client);
    let socket: Socket;
    try {
      socket = await dial(target.addresses, port, signal.signal);
    } catch (thrown) {
      const failure = toFailure(thrown, `${host.name}:${port}`);
      this.decisions.failed({ name: host.name, port, via: target.via, rule: target.rule }, failure.message);
      throw failure;
    } finally {
      signal.done();
    }
    return this.#register(target, socket, client);
  }

  /** Puts other rules and limits in force; cuts what they do not allow, and returns how many were cut. */
  update(policy: Policy, limits: EgressLimits): number {
    this.#policy = policy;
    this.#limits = limits;
    let cut = 0;
    for (const flow of this.#flows) {
      const against = this.#against(flow);
      if (!against) continue;
      this.cut(flow, against);
      cut++;
    }
    return cut;
  }

  cut(flow: Flow, why: string): void {
    flow.cut ||= why;
    flow.socket.destroy();
    flow.client.stream.destroy();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const flow of this.#flows) this.cut(flow, "the sandbox has ended");
    for (const client of this.#clients) client.stream.destroy();
    this.decisions.flush();
  }

  async #serveProxy(client: Client): Promise<void> {
    const first = await peek(client.stream, (bytes, ended) =>
      bytes.length > 0 ? bytes[0]! : ended ? -1 : undefined,
    );
    if (first === 5) await serveSocks(this, client);
    else if (first < 0) client.stream.end();
    else this.#http.serve(client);
  }

  /** For plain requests within a tunnel: their Host is compared with the target. */
  serveHttp(client: Client, target: Admitted, flow: Flow | undefined): void {
    this.#http.serve(client, target, flow);
  }

  async #serveTransparent(client: Client, name: string, port: number): Promise<void> {
    const target = await this.admit(name, port, "transparent", client);
    await tunnel(this, client, target, () => {});
  }

  async #admit(text: string, port: number, via: Via, client: Client): Promise<Admitted> {
    const host = canonicalHost(text);
    if (!host) throw Refusal.because("not a host", "what was asked for is neither a name nor an address");
    const policy = this.#policy;
    const verdict = policy.judge(host, port);
    if (verdict.verdict === "refused") throw new Refusal(verdict);
    const answered = verdict.verdict === "ask";
    if (answered) {
      if (!this.#asking) throw new Refusal({ ...verdict, verdict: "refused" });
      await this.#asking.ask(host.name, port, verdict.reason, client.stream);
    }
    const found = host.address ? [host.address] : await this.#lookUp(host.name, client);
    // The rules may have changed meanwhile.
    const again = policy === this.#policy ? verdict : this.#policy.judge(host, port);
    if (again.verdict === "refused") throw new Refusal(again);
    const against = found.map((address) => this.#policy.judgeAddress(address, host, port));
    const addresses = found.filter((_, index) => !against[index]);
    if (addresses.length === 0) {
      const first = against.findIndex(Boolean);
      throw first < 0
        ? new Failure("no address", `${host.name} has no address`)
        : new Refusal(against[first]!, found[first]!.text);
    }
    return { host, port, via, addresses, rule: answered ? "answer" : verdict.rule, answered };
  }

  async #lookUp(name: string, client: Client) {
    const signal = this.#connectSignal(client);
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.signal.addEventListener("abort", () => reject(signal.signal.reason), { once: true });
      });
      return await Promise.race([this.#resolver.resolve(name), aborted]);
    } catch (thrown) {
      throw toFailure(thrown, `the address of ${name}`);
    } finally {
      signal.done();
    }
  }

  #register(target: Admitted, socket: Socket, client: Client): Flow {
    const address =
      target.addresses.find(({ text }) => text === socket.remoteAddress) ?? target.addresses[0]!;
    const flow: Flow = {
      id: `c${++this.#lastFlow}`,
      target,
      address,
      socket,
      client,
      sent: 0,
      received: 0,
      openedAt: performance.now(),
      cut: "",
      count: (direction, bytes) => {
        flow[direction] += bytes;
        client.lastActive = performance.now();
        this.#count(direction, bytes);
      },
    };
    this.#flows.add(flow);
    client.flows.add(flow);
    socket.once("close", () => {
      this.#flows.delete(flow);
      client.flows.delete(flow);
      this.decisions.closed(flow);
    });
    this.decisions.allowed(flow);
    const against = this.#closed || client.stream.destroyed ? "the program has gone" : this.#against(flow);
    if (against) this.cut(flow, against);
    return flow;
  }

  /** What the rules in force have against an open connection. */
  #against(flow: Flow): string | undefined {
    const { host, port, answered } = flow.target;
    const verdict = this.#policy.judge(host, port);
    const name = verdict.verdict === "refused" || (verdict.verdict === "ask" && !answered);
    if (name) return verdict.reason;
    return this.#policy.judgeAddress(flow.address, host, port)?.reason;
  }

  /** Is this server name, sent to a literal address, one that may be reached by name? */
  allowsName(name: string, port: number): boolean {
    const host = canonicalHost(name);
    return host !== undefined && this.#policy.judge(host, port).verdict === "allowed";
  }

  /** Must a name be in the clear, because not every name is allowed? */
  get comparesNames(): boolean {
    return this.#policy.mode !== "on";
  }

  #overLimit(): Refusal | undefined {
    if (!this.#rate.take(this.#limits.connectionsPerSecond))
      return Refusal.because(
        "connection rate",
        `more than ${this.#limits.connectionsPerSecond} connections per second`,
      );
    if (this.#clients.size >= this.#limits.connections)
      return Refusal.because("connections", `${this.#limits.connections} connections are open`);
    return this.#outOfBytes() ? Refusal.because("bytes", "the sandbox has used up its bytes") : undefined;
  }

  #outOfBytes(): boolean {
    const { bytes } = this.#limits;
    return bytes > 0 && this.#passed + this.#sent + this.#received >= bytes;
  }

  #count(direction: "sent" | "received", bytes: number): void {
    if (direction === "sent") this.#sent += bytes;
    else this.#received += bytes;
    if (!this.#outOfBytes()) return;
    for (const flow of this.#flows) this.cut(flow, "the sandbox has used up its bytes");
  }

  #sweep(): void {
    const before = performance.now() - this.#limits.idleTimeoutMs;
    for (const client of this.#clients) {
      if (client.lastActive > before || this.#asking?.waits(client.stream)) continue;
      for (const flow of client.flows) this.cut(flow, "nothing passed for too long");
      client.stream.destroy();
    }
  }

  #leave(client: Client): void {
    this.#clients.delete(client);
    for (const { socket } of client.flows) {
      // What the program sent last may still be on its way.
      if (socket.writableEnded) socket.setTimeout(lingerMs, () => socket.destroy());
      else socket.destroy();
    }
    if (this.#clients.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #connectSignal(client: Client): { signal: AbortSignal; done(): void } {
    const controller = new AbortController();
    const late = () => controller.abort(new DOMException("it took too long", "TimeoutError"));
    const gone = () => controller.abort(new Error("the program has gone"));
    const timer = setTimeout(late, this.#limits.connectTimeoutMs).unref();
    client.stream.once("close", gone);
    const done = () => {
      clearTimeout(timer);
      client.stream.off("close", gone);
    };
    return { signal: controller.signal, done };
  }
}

/** A name for the log: bounded, and nothing that could act on a terminal. */
function shown(name: string): string {
  return (canonicalHost(name)?.name ?? JSON.stringify(name.slice(0, 100)).slice(1, -1)).slice(0, 255);
}
