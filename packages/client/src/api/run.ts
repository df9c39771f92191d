import type { ProcessEvent } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { toNumber } from "../values/numbers.ts";
import { type Exit, exitFrom, type Process, processFrom } from "../values/process.ts";
import { type EventStream, follow } from "./follow.ts";
import { type Result, ResultCollector } from "./result.ts";
import { Stdin } from "./stdin.ts";

/** A piece of output, or a note that some is no longer kept. Resuming from `seq` gives what comes after. */
export type OutputEvent =
  | { seq: number; stream: "stdout" | "stderr"; bytes: Uint8Array }
  | { seq: number; stream: "gap"; missing: number };

export interface OutputOptions extends CallOptions {
  /** Give what comes after this number. Default: 0, everything that is kept. */
  from?: number | undefined;
  /** False: stop at the end of what is kept instead of following the command. Default: true. */
  follow?: boolean | undefined;
}

/** What a call to a process that is gone answers. */
const endedAlready: ReadonlySet<string> = new Set(["PROCESS_ENDED", "SANDBOX_ENDED", "SANDBOX_NOT_FOUND"]);

/** A command that runs or has run. It goes on when nobody listens. */
export class Run {
  readonly sandboxId: string;
  /** The process's id in its sandbox. */
  readonly id: string;
  readonly stdin: Stdin;
  readonly #caller: Caller;
  /** The stream that came with the start, until somebody reads it. */
  #live: AsyncGenerator<ProcessEvent> | undefined;
  #exit: Exit | undefined;
  #waiting: Promise<Exit> | undefined;

  private constructor(
    caller: Caller,
    process: Pick<Process, "id" | "sandboxId">,
    live?: AsyncGenerator<ProcessEvent>,
  ) {
    this.#caller = caller;
    this.sandboxId = process.sandboxId;
    this.id = process.id;
    this.stdin = new Stdin(
      caller,
      { sandboxId: process.sandboxId, processId: process.id },
      live ? 0 : undefined,
    );
    this.#live = live;
  }

  /** Starts a command by a call that streams its events, and returns once it runs. */
  static async start(caller: Caller, open: () => EventStream, options: CallOptions = {}): Promise<Run> {
    const live = follow(caller, { open, from: 0, following: true, options });
    const first = await live.next();
    if (first.done || first.value.event.case !== "started") {
      throw new CaissonError("INTERNAL", "the server did not say that the command started");
    }
    return new Run(caller, first.value.event.value, live);
  }

  /** A command that is there already. */
  static existing(caller: Caller, process: Pick<Process, "id" | "sandboxId">): Run {
    return new Run(caller, process);
  }

  /** Its output from a number on, then as it comes; reattaches by itself after a cut. */
  async *output({
    from = 0,
    follow: following = true,
    ...options
  }: OutputOptions = {}): AsyncGenerator<OutputEvent> {
    const live = from === 0 && following ? this.#live : undefined;
    if (live) this.#live = undefined;
    const source = live ?? follow(this.#caller, { target: this, from, following, options });
    for await (const { seq, event } of source) {
      if (event.case === "stdout" || event.case === "stderr") {
        yield { seq: toNumber(seq), stream: event.case, bytes: event.value.data };
      } else if (event.case === "gap") {
        yield { seq: toNumber(seq), stream: "gap", missing: toNumber(event.value.missingBytes) };
      } else if (event.case === "exit") {
        this.#exit = exitFrom(event.value);
        return;
      }
    }
  }

  /** How it ended. Waits for it; a non-zero code is a value. */
  get exit(): Promise<Exit> {
    if (this.#exit) return Promise.resolve(this.#exit);
    this.#waiting ??= this.wait();
    // Whoever awaits it gets the error; whoever only looked at it is not punished.
    this.#waiting.catch(() => {
      this.#waiting = undefined;
    });
    return this.#waiting;
  }

  /** As `exit`, with a signal to stop waiting. */
  async wait(options?: CallOptions): Promise<Exit> {
    if (this.#exit) return this.#exit;
    const request = { sandboxId: this.sandboxId, processId: this.id };
    const { process } = await this.#caller.unary(
      (c) => c.ProcessService.method.waitProcess,
      request,
      options,
      {
        attemptTimeout: "none",
      },
    );
    if (!process?.exit) throw new CaissonError("INTERNAL", "the server answered without the exit");
    this.#exit = exitFrom(process.exit);
    await this.detach();
    return this.#exit;
  }

  /** Everything it writes, up to the batch limit, and how it ended. */
  async result(options?: CallOptions): Promise<Result> {
    const collected = new ResultCollector();
    for await (const event of this.output(options)) {
      if (event.stream === "gap") collected.miss();
      else collected.add(event.stream, event.bytes);
    }
    return collected.finish(await this.wait(options), { sandboxId: this.sandboxId, processId: this.id });
  }

  async info(options?: CallOptions): Promise<Process> {
    const request = { sandboxId: this.sandboxId, processId: this.id };
    const { process } = await this.#caller.unary((c) => c.ProcessService.method.getProcess, request, options);
    if (!process) throw new CaissonError("INTERNAL", "the server answered without the process");
    return processFrom(process);
  }

  /** Sends a signal, such as `SIGTERM`, to its whole group. */
  async signal(signal: string, options?: CallOptions): Promise<void> {
    const request = { sandboxId: this.sandboxId, processId: this.id, signal };
    await this.#caller.unary((c) => c.ProcessService.method.signalProcess, request, options);
  }

  /** Changes the size of its terminal. */
  async resize(columns: number, rows: number, options?: CallOptions): Promise<void> {
    const request = { sandboxId: this.sandboxId, processId: this.id, columns, rows };
    await this.#caller.unary((c) => c.ProcessService.method.resizeProcess, request, options);
  }

  /** Lets go of its stream; the command goes on. */
  async detach(): Promise<void> {
    const live = this.#live;
    this.#live = undefined;
    await live?.return(undefined);
  }

  /** Ends it if it still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.detach();
    if (this.#exit) return;
    try {
      await this.signal("SIGKILL");
    } catch (thrown) {
      if (!endedAlready.has(CaissonError.from(thrown).code)) throw thrown;
    }
  }
}
