import type { Exit, Run } from "@caisson/client";
import { rules } from "@caisson/contract/rules";
import type { Io, Sink } from "../io/io.ts";
import { Neutraliser, printable } from "../text/neutralise.ts";

export interface Wiring {
  /** Standard input is the command's. */
  stdin: boolean;
  /** The command has a terminal, and it is ours: bytes pass untouched in both directions. */
  terminal: boolean;
  /** What the caller started ends with the caller; what it only watches does not. */
  owned: boolean;
}

/** Signals that mean an end. */
const endings: ReadonlyMap<string, number> = new Map([
  ["SIGHUP", 1],
  ["SIGINT", 2],
  ["SIGQUIT", 3],
  ["SIGTERM", 15],
]);

/**
 * A command of a sandbox wired to the caller. Signals go to the command; a second one of those that mean an
 * end kills it, and so does a caller that vanishes.
 */
export class Wire {
  readonly #io: Io;
  readonly #wiring: Wiring;
  readonly #undo: (() => void)[] = [];
  readonly #givenUp = Promise.withResolvers<number>();
  #run: Run | undefined;
  #asked = false;

  constructor(io: Io, wiring: Wiring) {
    this.#io = io;
    this.#wiring = wiring;
    if (!wiring.owned) return;
    this.#undo.push(io.onSignal((signal) => this.#hear(signal)));
    const vanished = () => void this.#end();
    if (io.gone.aborted) vanished();
    io.gone.addEventListener("abort", vanished, { once: true });
    this.#undo.push(() => io.gone.removeEventListener("abort", vanished));
  }

  /**
   * Waits for a command to start, unless the caller gives up before. Then it is killed as soon as it runs,
   * and the exit code is all there is.
   */
  async start(starting: Promise<Run>): Promise<{ run: Run } | { code: number }> {
    const first = await Promise.race([
      starting.then((run) => ({ run })),
      this.#givenUp.promise.then((code) => ({ code })),
    ]);
    if ("code" in first) starting.then((run) => run[Symbol.asyncDispose]()).catch(ignore);
    else this.#run = first.run;
    return first;
  }

  /** Prints what the command writes until it has ended. */
  async relay(run: Run): Promise<Exit> {
    await this.during(run, () => relayOutput(this.#io, run, { from: 0, raw: this.#wiring.terminal }));
    return run.exit;
  }

  /** Relays signals and input while somebody else takes care of the output. */
  async during<T>(run: Run, work: () => Promise<T>): Promise<T> {
    const { stdin, terminal } = this.#wiring;
    try {
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
    const ending = endings.get(signal);
    if (!this.#run) {
      if (ending) this.#givenUp.resolve(128 + ending);
      return;
    }
    const again = ending !== undefined && this.#asked;
    if (ending) this.#asked = true;
    void this.#run.signal(again ? "SIGKILL" : signal).catch(ignore);
  }

  /** The caller is gone: ask, wait a little, then make it end. */
  async #end(): Promise<void> {
    const run = this.#run;
    if (!run) return this.#givenUp.resolve(129);
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
  const say = (words: string) =>
    io.stderr.write(`caisson: ${io.stderr.isTerminal ? printable(words) : words}\n`);
  if (exit.timedOut) await say("the command exceeded its time and was ended");
  if (exit.oomKilled)
    await say(
      `the command was ended because memory was exhausted${exit.lost ? ", and its sandbox with it" : ""}`,
    );
  if (exit.diskExceeded)
    await say("the command was ended: more was written to the project than limits.disk allows");
  if (exit.lost) {
    if (!exit.oomKilled) await say(`the command was lost: ${exit.lost}`);
    return exit.code > 0 ? exit.code : 125;
  }
  return exit.code & 255;
}
