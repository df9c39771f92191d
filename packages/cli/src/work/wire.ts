import type { Exit, Run } from "@caisson/client";
import { rules } from "@caisson/contract/rules";
import type { Io, Sink } from "../io/io.ts";
import { Neutraliser } from "../text/neutralise.ts";

export interface Wiring {
  /** Standard input is the command's. */
  stdin: boolean;
  /** The command has a terminal, and it is ours: bytes pass untouched in both directions. */
  terminal: boolean;
  /** What the caller started ends with the caller; what it only watches does not. */
  owned: boolean;
}

const endings: ReadonlySet<string> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);

/**
 * A command of a sandbox wired to the caller. Signals that come before the command runs wait for it, so
 * that none is lost; a second one of those that mean an end kills.
 */
export class Wire {
  readonly #io: Io;
  readonly #wiring: Wiring;
  readonly #undo: (() => void)[] = [];
  readonly #early: string[] = [];
  #run: Run | undefined;
  #asked = false;

  constructor(io: Io, wiring: Wiring) {
    this.#io = io;
    this.#wiring = wiring;
    if (!wiring.owned) return;
    this.#undo.push(io.onSignal((signal) => this.#hear(signal)));
    const vanished = () => void this.#end();
    io.gone.addEventListener("abort", vanished, { once: true });
    this.#undo.push(() => io.gone.removeEventListener("abort", vanished));
  }

  /** Prints what the command writes until it has ended. */
  async relay(run: Run): Promise<Exit> {
    await this.during(run, () => relayOutput(this.#io, run, { from: 0, raw: this.#wiring.terminal }));
    return run.exit;
  }

  /** Relays signals and input while somebody else takes care of the output. */
  async during<T>(run: Run, work: () => Promise<T>): Promise<T> {
    this.#run = run;
    const { stdin, terminal } = this.#wiring;
    try {
      if (this.#io.gone.aborted && this.#wiring.owned) void this.#end();
      for (const signal of this.#early.splice(0)) this.#send(signal);
      if (terminal) this.#takeTerminal(run);
      if (stdin) void this.#feed(run);
      return await work();
    } finally {
      this.close();
    }
  }

  /** Lets go of the caller's signals and terminal. */
  close(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  #takeTerminal(run: Run): void {
    this.#io.setRaw(true);
    this.#undo.push(() => this.#io.setRaw(false));
    this.#undo.push(this.#io.onResize(({ columns, rows }) => void run.resize(columns, rows).catch(ignore)));
  }

  async #feed(run: Run): Promise<void> {
    try {
      await run.stdin.pipe(this.#io.stdin.read());
    } catch {
      // It has ended, or does not read: its exit says what there is to say.
    }
  }

  #hear(signal: string): void {
    const again = this.#asked && endings.has(signal);
    if (endings.has(signal)) this.#asked = true;
    this.#send(again ? "SIGKILL" : signal);
  }

  #send(signal: string): void {
    if (this.#run) void this.#run.signal(signal).catch(ignore);
    else this.#early.push(signal);
  }

  /** The caller is gone: ask, wait a little, then make it end. */
  async #end(): Promise<void> {
    const run = this.#run;
    if (!run) return;
    if (!this.#asked) {
      this.#asked = true;
      void run.signal("SIGTERM").catch(ignore);
      const ended = await run.wait({ signal: AbortSignal.timeout(rules.times.exec_grace_ms) }).then(
        () => true,
        () => false,
      );
      if (ended) return;
    }
    await run.signal("SIGKILL").catch(ignore);
  }
}

function ignore(): void {}

export interface RelayOptions {
  from: number;
  /** Leave control characters as they are, also on a terminal. */
  raw: boolean;
  /** False: stop at the end of what is kept. */
  follow?: boolean;
  signal?: AbortSignal;
}

/** Prints a command's output: exact in pipes and files, harmless on a terminal. */
export async function relayOutput(io: Io, run: Run, { raw, ...options }: RelayOptions): Promise<void> {
  const outputs = { stdout: new Outlet(io.stdout, raw), stderr: new Outlet(io.stderr, raw) };
  for await (const event of run.output(options)) {
    if (event.stream === "gap") {
      await io.stderr.write(`caisson: ${event.missing} bytes of output are no longer kept\n`);
    } else {
      await outputs[event.stream].write(event.bytes);
    }
  }
  await outputs.stdout.end();
  await outputs.stderr.end();
}

class Outlet {
  readonly #sink: Sink;
  readonly #neutraliser: Neutraliser | undefined;

  constructor(sink: Sink, raw: boolean) {
    this.#sink = sink;
    this.#neutraliser = sink.isTerminal && !raw ? new Neutraliser() : undefined;
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    return this.#sink.write(this.#neutraliser?.push(bytes) ?? bytes);
  }

  end(): Promise<void> | undefined {
    const rest = this.#neutraliser?.end();
    return rest?.length ? this.#sink.write(rest) : undefined;
  }
}

/** What an exit means for the shell, with a word about what the code alone does not say. */
export async function reportExit(io: Io, exit: Exit): Promise<number> {
  const say = (words: string) => io.stderr.write(`caisson: ${words}\n`);
  if (exit.timedOut) await say("the command exceeded its time and was ended");
  if (exit.oomKilled) await say("the command was ended because memory was exhausted");
  if (exit.lost) {
    await say(`the command was lost: ${exit.lost}`);
    return exit.code > 0 ? exit.code : 125;
  }
  return exit.code & 255;
}
