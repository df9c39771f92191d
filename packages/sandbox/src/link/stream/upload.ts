import { CaissonError } from "@caisson/contract";
import type { Connection } from "../connection.ts";
import { LinkViolation } from "../violation.ts";
import { Outbound } from "./outbound.ts";
import type { StreamReceiver } from "./receiver.ts";

export interface Upload<T> {
  stream: number;
  /** Bytes that may be on their way. */
  window: number;
  content: AsyncIterable<Uint8Array>;
  /** Sends the call; settles when the guest has answered it or `abort` is aborted. */
  answer(abort: AbortSignal): Promise<T>;
  signal: AbortSignal;
}

/** Sends content to the guest, as fast as it takes it, until it answers. */
export async function sendContent<T>(connection: Connection, upload: Upload<T>): Promise<T> {
  const { stream, signal } = upload;
  const outbound = new Outbound(stream, upload.window);
  const giveUp = new AbortController();
  const abort = () => giveUp.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  const answer = upload.answer(giveUp.signal);
  let answered = false;
  const stop = new Stop();
  const onAnswer = () => {
    answered = true;
    outbound.fail(new CaissonError("CANCELLED", "the guest has answered"));
    stop.now();
  };
  answer.then(onAnswer, onAnswer);
  // A guest that resets the stream need not answer the call as well.
  const receiver = new UploadReceiver(connection, outbound, (failure) => giveUp.abort(failure));
  connection.open(stream, receiver);
  try {
    await feed(connection, outbound, upload.content, stop);
    return await answer;
  } catch (error) {
    giveUp.abort(error);
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
    connection.writer.withdraw(outbound);
    if (answered && !giveUp.signal.aborted) connection.drop(stream);
    else connection.reset(stream);
  }
}

/** Hands the content on, piece by piece, until it ends or is not wanted any more. */
async function feed(
  connection: Connection,
  outbound: Outbound,
  content: AsyncIterable<Uint8Array>,
  stop: Stop,
): Promise<void> {
  const iterator = content[Symbol.asyncIterator]();
  for (;;) {
    const next = await stop.orElse(iterator.next());
    if (!next) {
      // The content may itself be waiting for something that never comes: do not wait for its end.
      void Promise.resolve(iterator.return?.()).catch(() => {});
      return;
    }
    if (next.done) break;
    outbound.write(next.value).catch(() => {});
    connection.writer.offer(outbound);
    await outbound.room();
  }
  outbound.end();
  connection.writer.offer(outbound);
}

/** A wait that can be called off. */
class Stop {
  #stopped = false;
  #wake: (() => void) | undefined;

  now(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  /** What the promise resolves with, or nothing when called off before. */
  orElse<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(undefined);
      promise.then(resolve, reject);
      if (this.#stopped) resolve(undefined);
    });
  }
}

class UploadReceiver implements StreamReceiver {
  readonly room = 0;
  readonly #connection: Connection;
  readonly #outbound: Outbound;
  readonly #onReset: (failure: CaissonError) => void;

  constructor(connection: Connection, outbound: Outbound, onReset: (failure: CaissonError) => void) {
    this.#connection = connection;
    this.#outbound = outbound;
    this.#onReset = onReset;
  }

  data(): void {
    throw new LinkViolation("DATA on a stream that only takes it");
  }

  ack(position: number): void {
    if (this.#outbound.failure) return;
    this.#outbound.ack(position);
    this.#connection.writer.offer(this.#outbound);
  }

  end(): void {}

  reset(failure: CaissonError | undefined): void {
    const error = failure ?? new CaissonError("UNAVAILABLE", "the guest gave the transfer up");
    this.#outbound.fail(error);
    this.#onReset(error);
  }

  cut(error: CaissonError): void {
    this.#outbound.fail(error);
  }
}
