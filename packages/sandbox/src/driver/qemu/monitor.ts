import type { Socket } from "node:net";
import { CaissonError } from "@caisson/contract/errors";
import { connectSocket } from "../../keeper/connect.ts";

/** QEMU is confined and may have been taken over: what it says is bounded. */
const maxLineBytes = 1024 * 1024;

interface Message {
  id?: number;
  return?: unknown;
  error?: { desc?: unknown };
  event?: string;
}

/** A connection to a machine's monitor (QMP): one question at a time, closed after use. */
export class Monitor {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #buffer = "";
  #last = 0;
  #lost: CaissonError | undefined;

  static async open(path: string, withinMs = 10_000): Promise<Monitor> {
    const monitor = new Monitor(await connectSocket(path));
    await monitor.execute("qmp_capabilities", {}, withinMs);
    return monitor;
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => this.#hear(text));
    socket.on("error", () => this.#fail("the machine's monitor is gone"));
    socket.on("close", () => this.#fail("the machine's monitor is gone"));
  }

  async execute(command: string, args: Record<string, unknown> = {}, withinMs = 10_000): Promise<unknown> {
    if (this.#lost) throw this.#lost;
    const id = ++this.#last;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    const timer = setTimeout(() => this.#fail(`the machine's monitor does not answer ${command}`), withinMs);
    try {
      return await waiting.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #hear(text: string): void {
    this.#buffer += text;
    const lines = this.#buffer.split("\n");
    this.#buffer = lines.pop() ?? "";
    if (this.#buffer.length > maxLineBytes) this.#fail("the machine's monitor says too much");
    for (const line of lines) this.#answer(line);
  }

  #answer(line: string): void {
    let message: Message;
    try {
      message = JSON.parse(line);
    } catch {
      this.#fail("the machine's monitor says what nobody understands");
      return;
    }
    const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id);
    if (message.error) {
      waiting?.reject(
        new CaissonError("SANDBOX_FAILED", `QEMU: ${String(message.error.desc).slice(0, 300)}`),
      );
    } else waiting?.resolve(message.return);
  }

  #fail(words: string): void {
    this.#lost ??= new CaissonError("GUEST_LOST", words);
    for (const waiting of this.#waiting.values()) waiting.reject(this.#lost);
    this.#socket.destroy();
  }
}
