import { Connect_Kind } from "@caisson/contract/link";
import { connectionWindowBytes, decodeAck, firstGuestStream, frameType } from "../frame/frame.ts";
import type { FakeConnection } from "./fake-connection.ts";
import { FakeGuest } from "./fake-guest.ts";

const empty = new Uint8Array(0);

/** One TCP connection of a fake guest; takes what comes at once unless it is told not to. */
export class FakeSocket {
  readonly connection: FakeConnection;
  readonly stream: number;
  readonly received: Buffer[] = [];
  taken = 0;
  sent = 0;
  acked = 0;
  ended = false;
  wasReset = false;
  takes = true;
  #waiting: Uint8Array[] = [];
  #ends = false;

  constructor(connection: FakeConnection, stream: number) {
    this.connection = connection;
    this.stream = stream;
  }

  get text(): string {
    return Buffer.concat(this.received).toString();
  }

  get bytes(): number {
    return this.received.reduce((sum, piece) => sum + piece.length, 0);
  }

  /** Within the window. */
  send(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.#pump();
  }

  end(): void {
    this.#ends = true;
    this.#pump();
  }

  reset(): void {
    this.connection.frame(frameType.reset, this.stream, empty);
  }

  frame(type: number, payload: Uint8Array): void {
    if (type === frameType.data) {
      this.received.push(Buffer.from(payload));
      if (this.takes) this.take();
    } else if (type === frameType.ack) {
      this.acked = decodeAck(payload);
      this.#pump();
    } else if (type === frameType.end) this.ended = true;
    else this.wasReset = true;
  }

  take(): void {
    this.taken = this.bytes;
    this.connection.ack(this.stream, this.taken);
  }

  #pump(): void {
    for (;;) {
      const room = connectionWindowBytes - (this.sent - this.acked);
      const next = this.#waiting[0];
      if (!next) break;
      if (room <= 0) return;
      const piece = next.subarray(0, Math.min(room, 64 * 1024));
      if (piece.length === next.length) this.#waiting.shift();
      else this.#waiting[0] = next.subarray(piece.length);
      this.sent += piece.length;
      this.connection.data(this.stream, 0, piece);
    }
    if (this.#ends) {
      this.#ends = false;
      this.connection.frame(frameType.end, this.stream, empty);
    }
  }
}

/** A fake guest whose programs open connections, and whose ports from 1024 on can be dialled. */
export function guestWithSockets(): { fake: FakeGuest; sockets: Map<number, FakeSocket>; open: OpenSocket } {
  const sockets = new Map<number, FakeSocket>();
  let last = firstGuestStream - 1;
  const fake = new FakeGuest({
    onStream: (_connection, type, stream, payload) => {
      const socket = sockets.get(stream);
      socket?.frame(type, payload);
      return socket !== undefined;
    },
    onControl: (connection, { id, message }) => {
      if (message.case === "ports") {
        connection.control(id, { case: "ports", value: { ports: [{ port: 8080, address: "0.0.0.0" }] } });
        return true;
      }
      if (message.case !== "dial") return false;
      const { stream, port } = message.value;
      if (port < 1024) connection.fail(id, "PORT_CLOSED", "nothing listens there");
      else {
        sockets.set(stream, new FakeSocket(connection, stream));
        connection.control(id, { case: "done", value: {} });
      }
      return true;
    },
  });
  const open: OpenSocket = (target) => {
    last += 1;
    const connection = fake.connection!;
    const kind = target ? Connect_Kind.TRANSPARENT : Connect_Kind.PROXY;
    connection.control(0, { case: "connect", value: { stream: last, kind, ...target } });
    const socket = new FakeSocket(connection, last);
    sockets.set(last, socket);
    return socket;
  };
  return { fake, sockets, open };
}

type OpenSocket = (target?: { name: string; port: number }) => FakeSocket;
