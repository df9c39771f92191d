// The launcher on a real terminal, as people sit at one.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestDaemon } from "./daemon.ts";
import { eventually } from "./eventually.ts";

/** Handed over as text: an ordinary user may not be able to read the repository. */
const onTerminal = readFileSync(join(import.meta.dirname, "on-terminal.py"), "utf8");

export class Seat implements Disposable {
  readonly #child: ChildProcess;
  #bytes = Buffer.alloc(0);
  #ended: number | null | undefined;

  constructor(daemon: Pick<TestDaemon, "account" | "env">, args: readonly string[], cwd = "/") {
    const { account, env } = daemon;
    const program = join(account.root, ".caisson/bin/caisson");
    this.#child = spawn("python3", ["-c", onTerminal, program, ...args], {
      cwd,
      env: { ...env, TERM: "xterm" },
      stdio: ["pipe", "pipe", "inherit"],
      ...(account.uid === process.getuid!() ? {} : { uid: account.uid, gid: account.gid }),
    });
    this.#child.stdout!.on("data", (data) => {
      this.#bytes = Buffer.concat([this.#bytes, data]);
    });
    // Somebody may still be typing when it ends.
    this.#child.stdin!.on("error", () => {});
    this.#child.once("close", (code) => {
      this.#ended = code;
    });
  }

  /** Its exit code; what the terminal shows instead when it does not end. */
  get code(): Promise<unknown> {
    const left = () => (this.#ended === undefined ? this.text() : this.#ended);
    return eventually(left, (seen) => typeof seen !== "string");
  }

  text(): string {
    return this.#bytes.toString();
  }

  type(keys: string | Uint8Array): void {
    this.#say(`write ${Buffer.from(keys as string).toString("base64")}`);
  }

  resize(columns: number, rows: number): void {
    this.#say(`resize ${columns} ${rows}`);
  }

  hangUp(): void {
    this.#say("hangup");
  }

  shows(words: RegExp): Promise<string> {
    return eventually(
      () => this.text(),
      (text) => words.test(text),
      { what: String(words) },
    );
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }

  #say(order: string): void {
    this.#child.stdin!.write(`${order}\n`);
  }
}
