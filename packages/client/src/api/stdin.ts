import { rules } from "@caisson/contract/rules";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { toBytes } from "../values/output.ts";

/** Largest piece in one message, well below what a message may be. */
const pieceBytes = rules.sizes.message_bytes / 4;

/** What a command reads. An iterable is sent as it comes, and its end ends the input. */
export type StdinSource = string | Uint8Array | AsyncIterable<string | Uint8Array>;

/** A running command's standard input. Every write says where it begins, so that a repeated one is harmless. */
export class Stdin {
  readonly #caller: Caller;
  readonly #target: { sandboxId: string; processId: string };
  /** Unknown for a command that somebody else may have written to. */
  #offset: number | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(caller: Caller, target: { sandboxId: string; processId: string }, offset: number | undefined) {
    this.#caller = caller;
    this.#target = target;
    this.#offset = offset;
  }

  /** Resolves when the sandbox has taken the bytes. Writes keep their order. */
  write(data: string | Uint8Array, options?: CallOptions): Promise<void> {
    return this.#enqueue(toBytes(data), false, options);
  }

  /** Closes the input, after some last bytes if they are given. */
  end(data: string | Uint8Array = "", options?: CallOptions): Promise<void> {
    return this.#enqueue(toBytes(data), true, options);
  }

  /** Sends everything from a source, then the end. */
  async pipe(source: StdinSource, options?: CallOptions): Promise<void> {
    if (typeof source === "string" || source instanceof Uint8Array) return this.end(source, options);
    for await (const piece of source) await this.write(piece, options);
    await this.end("", options);
  }

  #enqueue(data: Uint8Array, end: boolean, options?: CallOptions): Promise<void> {
    const sent = this.#last.then(() => this.#send(data, end, options));
    this.#last = sent.catch(() => {});
    return sent;
  }

  async #send(data: Uint8Array, end: boolean, options?: CallOptions): Promise<void> {
    // Writing nothing at the very beginning changes nothing and tells how much was taken so far.
    this.#offset ??= await this.#write(0, new Uint8Array(0), false, options);
    let at = 0;
    do {
      const piece = data.subarray(at, at + pieceBytes);
      at += piece.length;
      await this.#write(this.#offset, piece, end && at === data.length, options);
      this.#offset += piece.length;
    } while (at < data.length);
  }

  async #write(offset: number, piece: Uint8Array, end: boolean, options?: CallOptions): Promise<number> {
    const data = piece as Uint8Array<ArrayBuffer>;
    const request = { ...this.#target, offset: BigInt(offset), data, end };
    const answer = await this.#caller.unary((c) => c.ProcessService.method.writeStdin, request, options, {
      attemptTimeout: "none",
    });
    return Number(answer.offset);
  }
}

/** How a source travels: small bytes with the command itself, everything else afterwards. */
export function placeStdin(source: StdinSource | undefined): {
  inline: Uint8Array | undefined;
  later: StdinSource | undefined;
} {
  if (source === undefined) return { inline: undefined, later: undefined };
  if (typeof source !== "string" && !(source instanceof Uint8Array))
    return { inline: undefined, later: source };
  const bytes = toBytes(source);
  return bytes.length <= pieceBytes
    ? { inline: bytes, later: undefined }
    : { inline: undefined, later: bytes };
}
