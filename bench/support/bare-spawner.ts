import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Times bare spawns one by one in a fresh Node process, whose memory nothing else has grown. */
export class BareSpawner implements AsyncDisposable {
  readonly #child = spawn(process.execPath, [join(import.meta.dirname, "bare-spawn-server.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  readonly #answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();

  /** Milliseconds of one spawn until everything of it is closed. */
  readonly spawn = async (): Promise<number> => {
    this.#child.stdin.write("\n");
    const { value, done } = await this.#answers.next();
    if (done) throw new Error("the process that spawns has ended");
    return Number(value);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await once(this.#child, "exit");
  }
}
