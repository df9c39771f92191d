import type { CaissonError } from "@caisson/contract";

/** One end of a stream: what the connection hands to it. */
export interface StreamReceiver {
  /** A piece of a DATA frame of which `left` bytes follow. */
  data(tag: number, piece: Uint8Array, left: number): void;
  ack(position: number): void;
  end(): void;
  reset(failure: CaissonError | undefined): void;
  /** The connection is gone. Streams that do not survive it fail; a process waits for the next one. */
  cut(error: CaissonError): void;
  /** Bytes that may still be on their way when our side closes the stream. */
  readonly room: number;
}
