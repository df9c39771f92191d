import type { Duplex } from "node:stream";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { GuestControlSchema } from "@caisson/contract/link";
import { encodeAck, encodeFrame, encodeHeader, frameType } from "../frame/frame.ts";

export type GuestMessageInit = NonNullable<MessageInitShape<typeof GuestControlSchema>["message"]>;

/** The guest's end of one connection; it writes whatever it is told to, also what no guest may. */
export class FakeConnection {
  readonly socket: Duplex;

  constructor(socket: Duplex) {
    this.socket = socket;
    socket.on("error", () => {});
  }

  get congested(): boolean {
    return this.socket.writableNeedDrain || this.socket.destroyed;
  }

  control(id: number, message: GuestMessageInit): void {
    this.frame(
      frameType.control,
      0,
      toBinary(GuestControlSchema, create(GuestControlSchema, { id, message })),
    );
  }

  fail(id: number, code: string, message: string): void {
    const control = create(GuestControlSchema, { id, failure: { code, message } });
    this.frame(frameType.control, 0, toBinary(GuestControlSchema, control));
  }

  frame(type: number, stream: number, payload: Uint8Array): void {
    this.raw(encodeFrame(type, stream, payload));
  }

  data(stream: number, tag: number, bytes: Uint8Array): void {
    this.raw(encodeHeader(frameType.data, stream, tag, bytes.length));
    this.raw(bytes);
  }

  ack(stream: number, position: number): void {
    this.raw(encodeAck(stream, position));
  }

  raw(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes);
  }
}
