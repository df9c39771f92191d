import { rules } from "@caisson/contract/rules";
import { concat, Output } from "../values/output.ts";
import type { Exit } from "../values/process.ts";

/** How a command ended and what it wrote. */
export interface Result extends Exit {
  sandboxId: string;
  processId: string;
  stdout: Output;
  stderr: Output;
}

type Source = { sandboxId: string; processId: string };

/** Gathers output up to the batch limit; what lies beyond is dropped and flagged. */
export class ResultCollector {
  readonly #pieces: Record<"stdout" | "stderr", Uint8Array[]> = { stdout: [], stderr: [] };
  #room: number = rules.sizes.exec_output_bytes;
  #truncated = false;

  add(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const kept = bytes.subarray(0, this.#room);
    if (kept.length < bytes.length) this.#truncated = true;
    if (kept.length === 0) return;
    this.#room -= kept.length;
    this.#pieces[stream].push(kept);
  }

  /** Some output is no longer to be had. */
  miss(): void {
    this.#truncated = true;
  }

  finish(exit: Exit, source: Source): Result {
    return {
      ...exit,
      truncated: exit.truncated || this.#truncated,
      ...source,
      stdout: new Output(concat(this.#pieces.stdout)),
      stderr: new Output(concat(this.#pieces.stderr)),
    };
  }
}
