import { Intake } from "./intake.ts";
import type { StreamReceiver } from "./receiver.ts";

/** The stream of a process that nobody has claimed yet: what comes is dropped, and sent again on the next connection. */
export class Discard implements StreamReceiver {
  readonly #intake: Intake;

  constructor(stream: number) {
    this.#intake = new Intake(stream);
  }

  get room(): number {
    return this.#intake.room;
  }

  data(_tag: number, piece: Uint8Array): void {
    this.#intake.receive(piece.length);
  }

  ack(): void {}
  end(): void {}
  reset(): void {}
  cut(): void {}
}
