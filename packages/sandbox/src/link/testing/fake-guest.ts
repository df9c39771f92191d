import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { rules } from "@caisson/contract";
import { type HostControl, HostControlSchema, type HostHello } from "@caisson/contract/link";
import { decodeAck, frameType, windowBytes } from "../frame/frame.ts";
import { FrameParser } from "../frame/parser.ts";
import { FakeConnection } from "./fake-connection.ts";
import { FakeFiles } from "./fake-files.ts";
import { FakeProcess } from "./fake-process.ts";

export interface FakeGuestOptions {
  version?: number;
  build?: string;
  /** Takes a control message instead of the fake; return true when it did. */
  onControl?: (connection: FakeConnection, control: HostControl) => boolean;
  /** Takes what comes on a stream, DATA piece by piece; return true when it did. */
  onStream?: (connection: FakeConnection, type: number, stream: number, payload: Uint8Array) => boolean;
}

/** The guest's half of the link without a sandbox around it, on a Unix socket of its own. */
export class FakeGuest implements AsyncDisposable {
  readonly path: string;
  readonly processes = new Map<number, FakeProcess>();
  readonly contents = new Map<string, Uint8Array>();
  readonly controls: HostControl[] = [];
  connections = 0;
  sealed = false;
  nextStream = 1;
  connection: FakeConnection | undefined;
  files: FakeFiles | undefined;
  readonly #options: FakeGuestOptions;
  readonly #dir = mkdtempSync(join(tmpdir(), "caisson-link-"));
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(options: FakeGuestOptions = {}) {
    this.#options = options;
    this.path = join(this.#dir, "link.sock");
  }

  async listen(): Promise<this> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.path, resolve));
    return this;
  }

  /** What a driver offers: a new connection to the guest. */
  readonly connect = (): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect(this.path);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(socket);
      });
      socket.once("error", reject);
    });

  /** Cuts the connection of the host, as a killed daemon would. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Nobody listens any more. */
  async stop(): Promise<void> {
    this.cut();
    const server = this.#server;
    this.#server = undefined;
    if (server) await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #serve(socket: Socket): void {
    this.connections += 1;
    this.connection?.socket.destroy();
    const connection = new FakeConnection(socket);
    const files = new FakeFiles(connection, this.contents);
    this.connection = connection;
    this.files = files;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("drain", () => {
      for (const process of this.processes.values()) process.pump();
      files.pump();
    });
    const parser = new FrameParser({
      data: (stream, _tag, piece) => {
        if (this.#options.onStream?.(connection, frameType.data, stream, piece)) return;
        if (!files.data(stream, piece)) this.processes.get(stream)?.stdin(piece);
      },
      message: (type, stream, payload) => {
        if (connection !== this.connection) return;
        if (type === frameType.control) {
          this.#control(connection, fromBinary(HostControlSchema, payload));
          return;
        }
        if (this.#options.onStream?.(connection, type, stream, payload)) return;
        if (type === frameType.ack) {
          this.processes.get(stream)?.ack(decodeAck(payload));
          files.ack(stream, decodeAck(payload));
        } else if (type === frameType.end) {
          files.end(stream);
          this.processes.get(stream)?.stdinEnd();
        } else files.reset(stream);
      },
    });
    socket.on("data", (chunk) => parser.push(chunk));
  }

  #control(connection: FakeConnection, control: HostControl): void {
    this.controls.push(control);
    const { id, message } = control;
    if (this.#options.onControl?.(connection, control)) return;
    switch (message.case) {
      case "hello":
        this.#hello(connection, id, message.value);
        return;
      case "ping":
        connection.control(id, { case: "pong", value: { processes: this.processes.size } });
        return;
      case "seal":
        this.sealed = true;
        connection.control(id, {
          case: "sealed",
          value: { holds: [{ name: "seccomp", enforced: true, by: "fake" }] },
        });
        return;
      case "start": {
        const start = message.value;
        this.nextStream = Math.max(this.nextStream, start.stream + 1);
        if (!FakeProcess.knows(start.argv[0])) {
          connection.fail(id, "COMMAND_NOT_FOUND", `${start.argv[0]}: not found`);
          return;
        }
        const process = new FakeProcess(start, 100 + start.stream);
        this.processes.set(start.stream, process);
        connection.control(id, { case: "started", value: { pid: process.pid } });
        process.attach(connection, 0);
        process.pump();
        return;
      }
      case "signal": {
        this.processes.get(message.value.stream)?.signal(message.value.signal);
        connection.control(id, { case: "done", value: {} });
        return;
      }
      case "forget":
        this.processes.delete(message.value.stream);
        return;
      case "usage":
        connection.control(id, { case: "usage", value: { processes: this.processes.size } });
        return;
      case "file":
        this.files?.call(id, message.value);
        return;
      default:
        connection.control(id, { case: "done", value: {} });
        return;
    }
  }

  #hello(connection: FakeConnection, id: number, hello: HostHello): void {
    const received = new Map(hello.received.map(({ stream, position }) => [stream, Number(position)]));
    for (const [stream, process] of this.processes) process.attach(connection, received.get(stream) ?? 0);
    connection.control(id, {
      case: "hello",
      value: {
        version: this.#options.version ?? rules.link.version,
        build: this.#options.build ?? "fake",
        sealed: this.sealed,
        window: windowBytes,
        nextStream: this.nextStream,
        processes: [...this.processes.values()].map((process) => process.state),
      },
    });
    for (const process of this.processes.values()) process.pump();
  }
}
