import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  CaissonError,
  type Command,
  type Process,
  type ProcessEvent,
  ProcessEventSchema,
  ProcessSchema,
} from "@caisson/contract";
import { programs } from "./program.ts";

const signalNumbers: Record<string, number> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 };

/** A command that exists only in memory. */
export class FakeProcess {
  readonly message: Process;
  readonly env: Record<string, string>;
  readonly signals: string[] = [];
  readonly killed: Promise<void>;
  ignoresSignals = false;
  touchesProject = false;
  onResize: (() => void) | undefined;
  size: { columns: number; rows: number };
  /** Output whose number is at most this is gone. */
  dropped = 0n;
  readonly #events: ProcessEvent[] = [];
  readonly #input: Uint8Array[];
  #inputTaken = 0n;
  #inputEnded: boolean;
  #signal = "";
  #kill: () => void = () => {};
  #changed = Promise.withResolvers<void>();

  constructor(sandboxId: string, id: string, command: Command, cwd: string) {
    const program = programs[command.argv[0] ?? ""];
    if (!program)
      throw new CaissonError("COMMAND_NOT_FOUND", `there is no ${command.argv[0]} in the sandbox`);
    this.env = command.env;
    this.size = { columns: command.terminal?.columns || 80, rows: command.terminal?.rows || 24 };
    this.#input = command.stdin.length > 0 ? [command.stdin] : [];
    this.#inputEnded = !command.keepStdin;
    this.message = create(ProcessSchema, {
      id,
      sandboxId,
      argv: command.argv,
      cwd: command.cwd || cwd,
      startedAt: timestampNow(),
      hasTerminal: command.terminal !== undefined,
    });
    this.killed = new Promise((resolve) => {
      this.#kill = resolve;
    });
    this.#push({ case: "started", value: this.message });
    void Promise.race([program(this, command.argv.slice(1)), this.killed.then(() => 0)]).then((code) =>
      this.#exit(code),
    );
  }

  get running(): boolean {
    return this.message.exit === undefined;
  }

  write(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    if (!this.running || bytes.length === 0) return;
    this.message.seq += BigInt(bytes.length);
    this.#push({ case: stream, value: { data: new Uint8Array(bytes) } });
  }

  async read(): Promise<Uint8Array | undefined> {
    while (this.#input.length === 0 && !this.#inputEnded && this.running) await this.#changed.promise;
    return this.#input.shift();
  }

  feed(offset: bigint, data: Uint8Array, end: boolean): bigint {
    if (!this.running) throw new CaissonError("PROCESS_ENDED", "it has exited");
    if (this.#inputEnded) throw new CaissonError("STDIN_CLOSED", "its input is closed");
    if (offset > this.#inputTaken) throw new CaissonError("INVALID_INPUT", "bytes before these are missing");
    const fresh = data.subarray(Number(this.#inputTaken - offset));
    if (fresh.length > 0) this.#input.push(new Uint8Array(fresh));
    this.#inputTaken += BigInt(fresh.length);
    this.#inputEnded = end;
    this.#wake();
    return this.#inputTaken;
  }

  signal(name: string): void {
    if (!this.running) throw new CaissonError("PROCESS_ENDED", "it has exited");
    this.signals.push(name);
    if (this.ignoresSignals && name !== "SIGKILL") return;
    this.#signal = name;
    this.#kill();
  }

  resize(columns: number, rows: number): void {
    this.size = { columns, rows };
    this.onResize?.();
  }

  async *attach(from: bigint, follow: boolean, signal: AbortSignal): AsyncGenerator<ProcessEvent> {
    let next = 0;
    if (from < this.dropped) {
      yield event(this.dropped, { case: "gap", value: { missingBytes: this.dropped - from } });
    }
    const start = from > this.dropped ? from : this.dropped;
    for (;;) {
      while (next < this.#events.length) {
        const found = this.#events[next++]!;
        const kind = found.event.case;
        if (kind === "started" && from > 0n) continue;
        if ((kind === "stdout" || kind === "stderr") && found.seq <= start) continue;
        yield cutBefore(found, start);
        if (kind === "exit") return;
      }
      if (!follow || signal.aborted) return;
      await Promise.race([
        this.#changed.promise,
        new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
      ]);
    }
  }

  async exited(signal: AbortSignal): Promise<Process> {
    for await (const _ of this.attach(0n, true, signal));
    return this.message;
  }

  #exit(code: number): void {
    const number = signalNumbers[this.#signal];
    this.message.endedAt = timestampNow();
    const exit = {
      code: number ? 128 + number : code,
      signal: this.#signal,
      durationMs: 1,
      projectTouched: this.touchesProject,
    };
    const message = event(this.message.seq, { case: "exit", value: exit });
    this.message.exit = message.event.value as never;
    this.#events.push(message);
    this.#wake();
  }

  #push(value: Parameters<typeof event>[1]): void {
    this.#events.push(event(this.message.seq, value));
    this.#wake();
  }

  #wake(): void {
    const changed = this.#changed;
    this.#changed = Promise.withResolvers();
    changed.resolve();
  }
}

function event(
  seq: bigint,
  value: NonNullable<Parameters<typeof create<typeof ProcessEventSchema>>[1]>["event"],
) {
  return create(ProcessEventSchema, { seq, event: value! });
}

function cutBefore(message: ProcessEvent, start: bigint): ProcessEvent {
  const { event: value } = message;
  if (value.case !== "stdout" && value.case !== "stderr") return message;
  const fresh = Number(message.seq - start);
  if (fresh >= value.value.data.length) return message;
  return event(message.seq, { case: value.case, value: { data: value.value.data.subarray(-fresh) } });
}
