import type { Socket } from "node:net";

/** What is gathered before it is written without waiting for the end of the turn. */
const flushAtBytes = 64 * 1024;

/**
 * Writes frames to a socket. What is sent in one turn of the event loop leaves in one system call, so
 * that a small answer and the end of its stream are one packet.
 */
export class Outbox {
  readonly #socket: Socket;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #scheduled = false;
  #waiting: (() => void)[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("drain", () => this.#release());
    socket.on("close", () => this.#release());
  }

  /** A frame, whole or in parts; large parts are not to be changed afterwards. */
  send(...parts: Uint8Array[]): void {
    for (const part of parts) {
      this.#pending.push(part);
      this.#pendingBytes += part.length;
    }
    if (this.#pendingBytes >= flushAtBytes) this.#flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      process.nextTick(() => this.#flush());
    }
  }

  /** True when the other side does not keep up. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Resolves when there is room again, or nobody is there any more. */
  async room(): Promise<void> {
    this.#flush();
    if (!this.isFull || this.#socket.destroyed) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #flush(): void {
    this.#scheduled = false;
    const parts = this.#pending;
    if (parts.length === 0) return;
    this.#pending = [];
    this.#pendingBytes = 0;
    if (!this.#socket.writable) return;
    if (parts.length === 1) {
      this.#socket.write(parts[0]!);
      return;
    }
    this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
    this.#socket.uncork();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
