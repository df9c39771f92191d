import { windowBytes } from "../frame/frame.ts";
import { LinkViolation } from "../violation.ts";

/** What has come on one stream, how much of it is taken for good, and how much of that the guest was told. */
export class Intake {
  readonly stream: number;
  /** Bytes that the guest may have sent and we not acknowledged. */
  readonly window: number;
  #received: number;
  /** Taken for good; the writer tells the guest in its own time. */
  taken: number;
  /** Told to the guest. Only this much widens its window. */
  acked: number;

  constructor(stream: number, position = 0, window = windowBytes) {
    this.stream = stream;
    this.window = window;
    this.#received = position;
    this.taken = position;
    this.acked = position;
  }

  get received(): number {
    return this.#received;
  }

  /** Bytes that the guest may still send before it hears from us again. */
  get room(): number {
    return this.window - (this.#received - this.acked);
  }

  receive(bytes: number): void {
    if (bytes > this.room) throw new LinkViolation("DATA beyond the window");
    this.#received += bytes;
  }

  /** Begins again at a position, on a new connection. */
  restart(position: number): void {
    this.#received = position;
    this.taken = position;
    this.acked = position;
  }
}
