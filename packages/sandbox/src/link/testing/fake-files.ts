import { create, toBinary } from "@bufbuild/protobuf";
import { ChangeSchema, EntriesSchema, type FileCall, FileEntry_Type } from "@caisson/contract/link";
import { frameType, windowBytes } from "../frame/frame.ts";
import type { FakeConnection } from "./fake-connection.ts";

const empty = new Uint8Array(0);

interface Sending {
  stream: number;
  frames: Uint8Array[];
  sent: number;
  acked: number;
  ends: boolean;
}

interface Receiving {
  id: number;
  path: string;
  parts: Uint8Array[];
  bytes: number;
}

/** Files in memory, served as a guest serves them: within windows, in order. Lives as long as its connection. */
export class FakeFiles {
  readonly #connection: FakeConnection;
  readonly #contents: Map<string, Uint8Array>;
  readonly #sending = new Map<number, Sending>();
  readonly #receiving = new Map<number, Receiving>();
  /** Streams that the host has reset. */
  readonly resets: number[] = [];

  constructor(connection: FakeConnection, contents: Map<string, Uint8Array>) {
    this.#connection = connection;
    this.#contents = contents;
  }

  call(id: number, { call }: FileCall): void {
    switch (call.case) {
      case "stat":
      case "read": {
        const content = this.#contents.get(call.value.path);
        if (!content) {
          this.#connection.fail(id, "PATH_NOT_FOUND", `${call.value.path}: no such file`);
          return;
        }
        this.#reply(id, call.value.path);
        if (call.case === "read") this.#send(call.value.stream, slices(content), true);
        return;
      }
      case "write":
        this.#receiving.set(call.value.stream, { id, path: call.value.path, parts: [], bytes: 0 });
        return;
      case "list": {
        this.#connection.control(id, { case: "file", value: {} });
        const frames = [...this.#contents].map(([path, content]) =>
          toBinary(EntriesSchema, create(EntriesSchema, { entries: [entry(path, content.length)] })),
        );
        this.#send(call.value.stream, frames, true);
        return;
      }
      case "watch": {
        this.#connection.control(id, { case: "file", value: {} });
        const change = create(ChangeSchema, {
          kind: 1,
          path: Buffer.from("/new"),
          type: FileEntry_Type.REGULAR,
        });
        this.#send(call.value.stream, [toBinary(ChangeSchema, change)], false);
        return;
      }
      default:
        this.#connection.fail(id, "INVALID_INPUT", "the fake guest has no such call");
    }
  }

  data(stream: number, bytes: Uint8Array): boolean {
    const receiving = this.#receiving.get(stream);
    if (!receiving) return this.resets.includes(stream);
    receiving.parts.push(bytes.slice());
    receiving.bytes += bytes.length;
    this.#connection.ack(stream, receiving.bytes);
    return true;
  }

  end(stream: number): void {
    const receiving = this.#receiving.get(stream);
    if (!receiving) return;
    this.#receiving.delete(stream);
    this.#contents.set(receiving.path, Buffer.concat(receiving.parts));
    this.#reply(receiving.id, receiving.path);
  }

  reset(stream: number): void {
    this.resets.push(stream);
    this.#receiving.delete(stream);
    this.#sending.delete(stream);
  }

  ack(stream: number, position: number): void {
    const sending = this.#sending.get(stream);
    if (sending) sending.acked = position;
    this.pump();
  }

  pump(): void {
    for (const sending of this.#sending.values()) {
      while (!this.#connection.congested) {
        const frame = sending.frames[0];
        if (!frame || frame.length > windowBytes - (sending.sent - sending.acked)) break;
        this.#connection.data(sending.stream, 0, frame);
        sending.sent += frame.length;
        sending.frames.shift();
      }
      if (sending.frames.length > 0 || !sending.ends) continue;
      this.#connection.frame(frameType.end, sending.stream, empty);
      this.#sending.delete(sending.stream);
    }
  }

  #send(stream: number, frames: Uint8Array[], ends: boolean): void {
    this.#sending.set(stream, { stream, frames, sent: 0, acked: 0, ends });
    this.pump();
  }

  #reply(id: number, path: string): void {
    const size = this.#contents.get(path)!.length;
    this.#connection.control(id, { case: "file", value: { entry: entry(path, size) } });
  }
}

function entry(path: string, size: number) {
  return {
    path: Buffer.from(path),
    type: FileEntry_Type.REGULAR,
    size: BigInt(size),
    mode: 0o644,
    etag: "e",
  };
}

function slices(content: Uint8Array): Uint8Array[] {
  const size = 100_000;
  return Array.from({ length: Math.ceil(content.length / size) }, (_, i) =>
    content.subarray(i * size, (i + 1) * size),
  );
}
