import type { Duplex } from "node:stream";
import { Refusal } from "./refusal.ts";
import { ruleFor } from "./rules.ts";
import type { Ask } from "./seams.ts";

/** Connections that wait for an answer. */
export class Asking {
  readonly #sandboxId: string;
  readonly #ask: Ask;
  readonly #waiting = new Set<Duplex>();

  constructor(sandboxId: string, ask: Ask) {
    this.#sandboxId = sandboxId;
    this.#ask = ask;
  }

  /** Resolves with a yes; rejects with a refusal otherwise. A program that goes away takes its question back. */
  async ask(name: string, port: number, reason: string, stream: Duplex): Promise<void> {
    const target = ruleFor(name, port);
    const controller = new AbortController();
    const gone = () => controller.abort(new Error("the program has gone"));
    stream.once("close", gone);
    this.#waiting.add(stream);
    try {
      const question = { sandboxId: this.#sandboxId, name, port, reason, signal: controller.signal };
      const { allow, by } = await this.#ask(question);
      if (allow) return;
      throw by
        ? Refusal.because("answer", `${target} was refused by ${by}`)
        : Refusal.because("no answer", `nobody allowed ${target} in time`, target);
    } finally {
      stream.off("close", gone);
      this.#waiting.delete(stream);
    }
  }

  waits(stream: Duplex): boolean {
    return this.#waiting.has(stream);
  }
}
