// Calls the native launcher as people do.
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { TestDaemon } from "./daemon.ts";

export interface Said {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  out: string;
  err: string;
}

// biome-ignore lint/suspicious/noExplicitAny: what is printed has no type here; each test asserts the fields it looks at.
export type Parsed = any;

export interface LaunchOptions {
  stdin?: string | Uint8Array;
  cwd?: string;
  env?: Record<string, string>;
}

/** The `caisson` of a daemon's account, in a directory. */
export class Launcher {
  readonly #daemon: Pick<TestDaemon, "account" | "env">;
  readonly cwd: string;

  constructor(daemon: Pick<TestDaemon, "account" | "env">, cwd = "/") {
    this.#daemon = daemon;
    this.cwd = cwd;
  }

  /** Starts it and leaves it running. */
  start(
    args: string[],
    options: LaunchOptions & { input?: "pipe" | "ignore" } = {},
    program = join(this.#daemon.account.root, ".caisson/bin/caisson"),
  ): ChildProcess {
    const { account, env } = this.#daemon;
    return spawn(program, args, {
      cwd: options.cwd ?? this.cwd,
      env: { ...env, ...options.env },
      stdio: [options.input ?? (options.stdin === undefined ? "ignore" : "pipe"), "pipe", "pipe"],
      ...(account.uid === process.getuid!() ? {} : { uid: account.uid, gid: account.gid }),
    });
  }

  /** Runs it to its end. */
  run(args: string[], options: LaunchOptions = {}): Promise<Said> {
    const child = this.start(args, options);
    const said = ending(child);
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.stdin);
    return said;
  }

  /** Runs it with `--json` behind its first words and parses what it prints; it must succeed. */
  async json(words: string[], rest: string[] = [], options: LaunchOptions = {}): Promise<Parsed> {
    const { code, out, err } = await this.run([...words, "--json", ...rest], options);
    if (code !== 0) throw new Error(`caisson ${words.join(" ")} ended with ${code}: ${err}`);
    return JSON.parse(out);
  }
}

/** Everything a child says until it has ended. */
export function ending(child: ChildProcess): Promise<Said> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout!.on("data", (data) => out.push(data));
  child.stderr!.on("data", (data) => err.push(data));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const stdout = Buffer.concat(out);
      resolve({ code, signal, stdout, out: stdout.toString(), err: Buffer.concat(err).toString() });
    });
  });
}
