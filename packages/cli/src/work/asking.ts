import type { Approval, Client, DecisionScope } from "@caisson/client";
import type { Io } from "../io/io.ts";
import { printable } from "../text/neutralise.ts";

/** Commands that end sooner than this never ask: nobody looks for requests on their behalf. */
const lookAfterMs = 200;
const lookAgainMs = 1000;

const answers: Readonly<Record<string, { allow: boolean; scope: DecisionScope }>> = {
  y: { allow: true, scope: "once" },
  s: { allow: true, scope: "sandbox" },
  a: { allow: true, scope: "always" },
  n: { allow: false, scope: "once" },
};

/** `ask`: on the caller's terminal. `tell`: a line that says how to answer. `silent`: the terminal is the command's. */
type Manner = "ask" | "tell" | "silent";

function mannerFor({ stdin, stderr }: Io, wiring: { stdin: boolean; terminal: boolean }): Manner {
  if (wiring.terminal) return "silent";
  return stdin.isTerminal && stderr.isTerminal && !wiring.stdin ? "ask" : "tell";
}

/** Shows the requests of a command's sandbox to whoever started it. */
export class Asking {
  readonly #client: Client;
  readonly #asker: Asker | undefined;
  #stop: (() => void) | undefined;

  constructor(io: Io, client: Client, wiring: { stdin: boolean; terminal: boolean }) {
    const manner = mannerFor(io, wiring);
    this.#client = client;
    this.#asker = manner === "silent" ? undefined : new Asker(io, client, manner);
  }

  /** From now on shows these, and no others. */
  show(query: { sandboxId?: string; wanted?: (approval: Approval) => boolean }): void {
    this.stop();
    const stopping = new AbortController();
    const { signal } = stopping;
    const begin = () => {
      const requests = this.#client.approvals.watch({ sandboxId: query.sandboxId, signal });
      // A daemon that does not let this caller see them still runs the command.
      this.#asker?.each(requests, signal, query.wanted).catch(() => {});
    };
    const timer = setTimeout(begin, lookAfterMs);
    this.#stop = () => {
      clearTimeout(timer);
      stopping.abort();
    };
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}

/** Asks one thing after the other. */
export class Asker {
  readonly #io: Io;
  readonly #client: Client;
  #manner: Exclude<Manner, "silent">;
  #lines: AsyncIterator<string> | undefined;
  /** Begun for an earlier question that somebody else answered. */
  #reading: Promise<string | undefined> | undefined;

  constructor(io: Io, client: Client, manner: Exclude<Manner, "silent">) {
    this.#io = io;
    this.#client = client;
    this.#manner = manner;
  }

  async each(
    requests: AsyncIterable<Approval>,
    signal: AbortSignal,
    wanted: (approval: Approval) => boolean = () => true,
  ): Promise<void> {
    for await (const approval of requests) {
      if (!wanted(approval)) continue;
      if (this.#manner === "ask") await this.#ask(approval, signal);
      else await this.#tell(approval);
    }
  }

  async #tell(approval: Approval): Promise<void> {
    await this.#say(
      `caisson: ${describe(approval)}; answer with \`caisson approvals allow ${approval.id}\`\n`,
    );
  }

  async #ask(approval: Approval, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const forSandbox = approval.sandboxId ? ", [s] for this sandbox" : "";
      await this.#say(`caisson: ${describe(approval)}. Allow? [y]es once${forSandbox}, [a]lways, [n]o: `);
      const line = await this.#answer(approval, signal);
      if (line === undefined) return;
      const answer = answers[line.trim().toLowerCase().slice(0, 1)];
      if (!answer) continue;
      try {
        const { allow, deny } = this.#client.approvals;
        const decide = answer.allow ? allow : deny;
        await decide.call(this.#client.approvals, approval.id, { scope: answer.scope });
        return;
      } catch (thrown) {
        await this.#say(`caisson: ${printable((thrown as Error).message)}\n`);
        if ((thrown as { code?: string }).code === "APPROVAL_DECIDED") return;
      }
    }
  }

  /** A line of the terminal; undefined when it is not needed any more, or will not come. */
  async #answer(approval: Approval, signal: AbortSignal): Promise<string | undefined> {
    this.#lines ??= lines(this.#io.stdin.read());
    this.#reading ??= this.#lines.next().then(({ value, done }) => (done ? undefined : value));
    const settled = new AbortController();
    try {
      const first = await Promise.race([
        this.#reading.then((line) => ({ line })),
        this.#settledElsewhere(approval, AbortSignal.any([signal, settled.signal])),
      ]);
      if (first === undefined) return undefined;
      this.#reading = undefined;
      // Nobody types here any more.
      if (first.line === undefined) this.#manner = "tell";
      return first.line;
    } finally {
      settled.abort();
    }
  }

  async #settledElsewhere(approval: Approval, signal: AbortSignal): Promise<undefined> {
    for (;;) {
      await pause(lookAgainMs, signal);
      if (signal.aborted) return;
      const { state, decidedBy } = await this.#client.approvals.get(approval.id).catch(() => approval);
      if (state === "pending") continue;
      await this.#say(
        `\ncaisson: ${state}${decidedBy ? ` by ${printable(decidedBy)}` : ": no answer came in time"}\n`,
      );
      return;
    }
  }

  async #say(text: string): Promise<void> {
    await this.#io.stderr.write(text);
  }
}

/** Who wants what, and why it has to be asked. */
export function describe({ kind, subject, sandboxId, agent, reason, requestedBy }: Approval): string {
  const who = sandboxId || requestedBy;
  const words = `${agent ? `${agent} in ` : ""}${who} wants ${kind} ${subject}${reason ? `: ${reason}` : ""}`;
  return printable(words);
}

async function* lines(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of source) {
    const parts = (text + decoder.decode(bytes, { stream: true })).split("\n");
    text = parts.pop()!.slice(-1024);
    yield* parts;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
