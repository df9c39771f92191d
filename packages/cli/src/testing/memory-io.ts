import type { Io, Sink, Size } from "../io/io.ts";

export interface MemoryIoOptions {
  stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Which of the three are a terminal. */
  terminals?: readonly ("stdin" | "stdout" | "stderr")[];
  env?: Record<string, string>;
  /** What `askEnv` finds. */
  callerEnv?: Record<string, string>;
  cwd?: string;
  files?: Record<string, string>;
  size?: Size;
}

/** A caller in memory: what it is told is kept, what it does is done by the test. */
export class MemoryIo implements Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: Io["stdin"];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly raw: boolean[] = [];
  size: Size | undefined;
  stdinAsked = 0;
  readonly #out: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
  readonly #options: MemoryIoOptions;
  readonly #gone = new AbortController();
  readonly #signals = new Set<(signal: string) => void>();
  readonly #sizes = new Set<(size: Size) => void>();

  constructor(options: MemoryIoOptions = {}) {
    this.#options = options;
    this.cwd = options.cwd ?? "/srv/project";
    this.env = { HOME: "/home/user", TERM: "xterm", ...options.env };
    this.size = options.size;
    this.stdout = this.#sink("stdout");
    this.stderr = this.#sink("stderr");
    this.stdin = {
      isTerminal: options.terminals?.includes("stdin") ?? false,
      isEmpty: options.stdin === undefined && !options.terminals?.includes("stdin"),
      read: () => {
        this.stdinAsked++;
        const { stdin = "" } = options;
        return typeof stdin === "string" || stdin instanceof Uint8Array ? once(Buffer.from(stdin)) : stdin;
      },
    };
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get out(): string {
    return Buffer.concat(this.#out.stdout).toString("utf8");
  }

  get outBytes(): Buffer {
    return Buffer.concat(this.#out.stdout);
  }

  get err(): string {
    return Buffer.concat(this.#out.stderr).toString("utf8");
  }

  get json(): unknown {
    return JSON.parse(this.out);
  }

  signal(name: string): void {
    for (const listener of [...this.#signals]) listener(name);
  }

  resize(size: Size): void {
    this.size = size;
    for (const listener of [...this.#sizes]) listener(size);
  }

  vanish(): void {
    this.#gone.abort();
  }

  get listeners(): number {
    return this.#signals.size + this.#sizes.size;
  }

  async askEnv(names: string[]): Promise<Record<string, string>> {
    const known = this.#options.callerEnv ?? {};
    return Object.fromEntries(names.flatMap((name) => (name in known ? [[name, known[name]!]] : [])));
  }

  async *readFile(path: string): AsyncGenerator<Uint8Array> {
    const content = this.#options.files?.[path];
    if (content === undefined) throw new Error("no such file or directory");
    yield Buffer.from(content);
  }

  onSignal(listener: (signal: string) => void): () => void {
    this.#signals.add(listener);
    return () => void this.#signals.delete(listener);
  }

  onResize(listener: (size: Size) => void): () => void {
    this.#sizes.add(listener);
    return () => void this.#sizes.delete(listener);
  }

  setRaw(raw: boolean): void {
    this.raw.push(raw);
  }

  #sink(name: "stdout" | "stderr"): Sink {
    return {
      isTerminal: this.#options.terminals?.includes(name) ?? false,
      write: (data) => {
        this.#out[name].push(Buffer.from(data as string));
        return undefined;
      },
    };
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}
