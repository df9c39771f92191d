import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract";
import type { GuestHello, ListeningPort, Sealed, UsageReport } from "@caisson/contract/link";
import type { Connection, Reply } from "./connection.ts";
import { Connections } from "./connections.ts";
import { LinkCut } from "./failure.ts";
import { LinkedFiles } from "./files.ts";
import type { Guest, GuestConnection, GuestFiles, OutputSink, SealInit, StartInit } from "./guest.ts";
import { Lifeline } from "./lifeline.ts";
import type { GuestMessage, HostMessage } from "./messages.ts";
import { type LinkSettings, type OpenOptions, settingsOf } from "./options.ts";
import { Processes } from "./processes.ts";
import type { ProcessStream } from "./stream/process.ts";

/** One for all processes: most are forgotten without anybody who would be told. */
const isForgotten = new CaissonError("PROCESS_ENDED", "the process is forgotten");

/**
 * Opens the link to a guest and keeps it open. Rejects with VERSION_MISMATCH when daemon and guest
 * do not fit together, with GUEST_LOST when nobody answers or the answer breaks the rules.
 */
export async function openGuest(connect: () => Promise<Duplex>, options: OpenOptions = {}): Promise<Guest> {
  const guest = new LinkedGuest(connect, settingsOf(options), options.sinks ?? []);
  options.ended?.then((reason) => guest.sandboxEnded(reason));
  await guest.open();
  return guest;
}

class LinkedGuest implements Guest {
  readonly files: GuestFiles;
  readonly #settings: LinkSettings;
  readonly #lifeline: Lifeline;
  readonly #processes: Processes;
  readonly #connections = new Connections();
  #sinkFailures = 0;
  #sinkFailedAt = 0;

  constructor(
    connect: () => Promise<Duplex>,
    settings: LinkSettings,
    sinks: Iterable<readonly [number, OutputSink]>,
  ) {
    this.#settings = settings;
    this.#processes = new Processes({
      sinkFailed: () => this.#onSinkFailed(),
      claimedLate: () => queueMicrotask(() => this.#lifeline.reopen(0)),
    });
    for (const [stream, sink] of sinks) this.#processes.adopt(stream, sink);
    this.#lifeline = new Lifeline(connect, settings, this.#processes, (message, connection) =>
      this.#connections.arrived(message, connection),
    );
    this.files = new LinkedFiles(this.#lifeline, this.#processes);
  }

  open(): Promise<void> {
    return this.#lifeline.open();
  }

  sandboxEnded(reason: string): void {
    this.#lifeline.sandboxEnded(reason);
  }

  get hello(): GuestHello {
    return this.#lifeline.hello;
  }

  get lost(): Promise<Error> {
    return this.#lifeline.lost;
  }

  seal(seal: SealInit): Promise<Sealed> {
    return this.#call("sealed", { case: "seal", value: seal }, () => this.#lifeline.sealed());
  }

  async renew(sandbox: string): Promise<void> {
    await this.#call("done", { case: "renew", value: { sandbox } });
  }

  nextStream(): number {
    return this.#processes.takeStream();
  }

  async start(start: StartInit, sink: OutputSink): Promise<{ pid: number }> {
    const process = this.#processes.add(start.stream ?? 0, sink);
    try {
      for (;;) {
        const pid = await this.#startOnce(process, start);
        if (pid !== undefined) return { pid };
      }
    } catch (error) {
      this.#processes.remove(process.stream, CaissonError.from(error));
      throw error;
    }
  }

  /** Resolves with nothing when the link was cut before the guest heard of it. */
  async #startOnce(process: ProcessStream, start: StartInit): Promise<number | undefined> {
    const connection = this.#lifeline.connection ?? (await this.#lifeline.ready());
    process.bind(connection);
    try {
      const started = connection.call(
        "started",
        { case: "start", value: start },
        {
          accept: () => {
            process.confirmed = true;
          },
        },
      );
      connection.writer.push();
      const { pid } = await started;
      return pid;
    } catch (error) {
      if (!(error instanceof LinkCut)) throw error;
      await this.#lifeline.ready();
      return this.hello.processes.find(({ stream }) => stream === process.stream)?.pid;
    }
  }

  resume(stream: number, sink: OutputSink): void {
    this.#processes.adopt(stream, sink);
    this.#lifeline.reopen(0);
  }

  async writeStdin(stream: number, bytes: Uint8Array): Promise<void> {
    await this.#process(stream).writeInput(bytes);
  }

  endStdin(stream: number): void {
    this.#process(stream).endInput();
  }

  async signal(stream: number, signal: number, tree: boolean): Promise<void> {
    await this.#call("done", { case: "signal", value: { stream, signal, tree } });
  }

  async resize(stream: number, columns: number, rows: number): Promise<void> {
    await this.#call("done", { case: "resize", value: { stream, columns, rows } });
  }

  forget(stream: number): void {
    this.#processes.remove(stream, isForgotten);
    this.#lifeline.connection?.tell({ case: "forget", value: { stream } });
  }

  usage(): Promise<UsageReport> {
    return this.#call("usage", { case: "usage", value: {} });
  }

  async ping(): Promise<number> {
    return (await this.#call("pong", { case: "ping", value: {} })).processes;
  }

  onConnection(handler: (connection: GuestConnection) => void): void {
    this.#connections.handler = handler;
  }

  async connect(port: number, signal: AbortSignal): Promise<Duplex> {
    if (signal.aborted) throw CaissonError.from(signal.reason);
    const connection = this.#lifeline.connection ?? (await this.#lifeline.ready());
    return this.#connections.dial(connection, { stream: this.#processes.takeStream(), port }, signal);
  }

  async ports(): Promise<ListeningPort[]> {
    return (await this.#call("ports", { case: "ports", value: {} })).ports;
  }

  async shutdown(): Promise<void> {
    const connection = await this.#lifeline.ready();
    this.#lifeline.expectEnd();
    try {
      await connection.call("done", { case: "shutdown", value: {} });
    } catch (error) {
      if (!(error instanceof LinkCut)) throw error;
    }
  }

  close(): void {
    this.#lifeline.close();
  }

  /** Without a cut in between, the call is on its way when this returns: calls keep their order. */
  async #call<C extends NonNullable<GuestMessage["case"]>>(
    expects: C,
    message: HostMessage,
    accept?: () => void,
  ): Promise<Reply<C>> {
    const connection: Connection = this.#lifeline.connection ?? (await this.#lifeline.ready());
    return connection.call(expects, message, accept ? { accept } : {});
  }

  #process(stream: number): ProcessStream {
    const process = this.#processes.get(stream);
    if (!process) throw new CaissonError("PROCESS_NOT_FOUND", "the process is not known or is forgotten");
    return process;
  }

  #onSinkFailed(): void {
    const now = performance.now();
    const delays = this.#settings.sinkRetryDelaysMs;
    const last = delays[Math.min(this.#sinkFailures, delays.length) - 1] ?? 0;
    if (now - this.#sinkFailedAt > 4 * last) this.#sinkFailures = 0;
    this.#sinkFailedAt = now;
    const delay = delays[Math.min(this.#sinkFailures, delays.length - 1)] ?? 0;
    this.#sinkFailures += 1;
    setTimeout(() => this.#lifeline.reopen(0), delay).unref();
  }
}
