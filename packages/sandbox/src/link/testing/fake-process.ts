import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ExitedSchema, ProcessState, ProcessStateSchema, Start } from "@caisson/contract/link";
import { windowBytes } from "../frame/frame.ts";
import type { FakeConnection } from "./fake-connection.ts";
import { pattern, tagAt } from "./pattern.ts";

/**
 * A process of the fake guest. Programs: `pattern BYTES RUN [PIECE]` prints the pattern, `cat` prints its input,
 * `exit CODE` does just that, `hang` runs until it gets a signal.
 */
export class FakeProcess {
  readonly stream: number;
  readonly pid: number;
  exited: MessageInitShape<typeof ExitedSchema> | undefined;
  stdinTaken = 0;
  #argv: string[];
  /** Output in all: known ahead for a pattern, what came so far for `cat`. */
  #length = 0;
  #complete = false;
  #acked = 0;
  #sent = 0;
  #echo: Uint8Array = new Uint8Array(0);
  #status: { code: number; signal: number } = { code: 0, signal: 0 };
  #connection: FakeConnection | undefined;

  constructor(start: Start, pid: number) {
    this.stream = start.stream;
    this.pid = pid;
    this.#argv = start.argv;
    const [program, first] = start.argv;
    if (program === "pattern") {
      this.#length = Number(first);
      this.#complete = true;
    } else if (program === "exit") {
      this.#status = { code: Number(first), signal: 0 };
      this.#complete = true;
    }
  }

  static knows(program: string | undefined): boolean {
    return ["pattern", "exit", "cat", "hang"].includes(program ?? "");
  }

  /** What the host says it has stored. */
  get acked(): number {
    return this.#acked;
  }

  get state(): MessageInitShape<typeof ProcessStateSchema> & Partial<ProcessState> {
    return {
      stream: this.stream,
      pid: this.pid,
      firstPosition: BigInt(this.#acked),
      stdinPosition: BigInt(this.stdinTaken),
      ...(this.exited ? { exited: this.exited } : {}),
    } as never;
  }

  /** Sends from `position` on this connection: what lies before is stored by the host. */
  attach(connection: FakeConnection, position: number): void {
    this.#connection = connection;
    this.#acked = Math.max(this.#acked, position);
    this.#sent = this.#acked;
  }

  /** The same process under another number, as only a liar has it. */
  renamed(stream: number): FakeProcess {
    return new FakeProcess({ stream, argv: this.#argv } as Start, this.pid);
  }

  stdin(bytes: Uint8Array): void {
    this.stdinTaken += bytes.length;
    this.#connection?.ack(this.stream, this.stdinTaken);
    if (this.#argv[0] !== "cat" || this.#complete) return;
    this.#echo = Buffer.concat([this.#echo, bytes]);
    this.#length = this.#echo.length;
    this.pump();
  }

  stdinEnd(): void {
    if (this.#argv[0] === "cat") this.#complete = true;
    this.pump();
  }

  signal(signal: number): void {
    this.#complete = true;
    this.#status = { code: -1, signal };
    this.pump();
  }

  ack(position: number): void {
    this.#acked = position;
    this.pump();
  }

  /** Sends what the window and the socket allow; then the exit. */
  pump(): void {
    const connection = this.#connection;
    if (!connection) return;
    const run = Number(this.#argv[2] ?? Number.MAX_SAFE_INTEGER);
    const pieceBytes = Number(this.#argv[3] ?? 256 * 1024);
    while (!connection.congested && this.#sent < this.#length) {
      const room = windowBytes - (this.#sent - this.#acked);
      const inRun = run - (this.#sent % run);
      const want = Math.min(room, inRun, pieceBytes, this.#length - this.#sent);
      if (want <= 0) return;
      const bytes =
        this.#argv[0] === "cat"
          ? this.#echo.subarray(this.#sent, this.#sent + want)
          : pattern(this.#sent, want);
      connection.data(this.stream, tagAt(this.#sent, run), bytes);
      this.#sent += bytes.length;
    }
    if (this.#complete && this.#sent === this.#length && !this.exited) {
      this.exited = { stream: this.stream, position: BigInt(this.#length), ...this.#status };
      connection.control(0, { case: "exited", value: this.exited });
    }
  }
}
