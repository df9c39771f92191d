import { type ChildProcess, spawn } from "node:child_process";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { decodeMessage, encodeMessage } from "@caisson/contract/codec";
import { CaissonError, isErrorCode } from "@caisson/contract/errors";
import {
  type Ended,
  type KeeperReply,
  KeeperReplySchema,
  KeeperRequestSchema,
} from "@caisson/contract/keeper";
import { frame, Unframer } from "./framing.ts";
import type { KeeperOptions } from "./keeper.ts";

export type Request = NonNullable<MessageInitShape<typeof KeeperRequestSchema>["request"]>;
export type Reply = KeeperReply["reply"];

interface Call {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** The keeper died while it was asked: whether it has done what it was asked is not known. */
export class KeeperDied extends Error {
  override readonly name = "KeeperDied";
}

/** One keeper process and the requests that it has not answered yet. */
export class Channel {
  readonly #child: ChildProcess;
  readonly #calls = new Map<number, Call>();
  readonly #replies = new Unframer();
  #lastId = 0;
  #gone: KeeperDied | undefined;

  /** Resolves when the process is gone; what it was asked has been rejected before. */
  readonly closed: Promise<void>;

  constructor({ guest, runAs }: KeeperOptions, onEnded: (ended: Ended) => void) {
    // In a session of its own, so that Ctrl-C in the daemon's terminal is not for it. It leaves when its input ends.
    this.#child = spawn(guest, ["keeper"], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
      cwd: "/",
      env: {},
      ...runAs,
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    const lose = (why: string) => {
      this.#lose(why);
      resolve();
    };
    this.#child.once("error", (error) => lose(error.message));
    this.#child.once("close", (code, signal) => lose(`it ended with ${signal ?? code}`));
    this.#child.stdin?.on("error", () => {});
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk, onEnded));
  }

  call(request: Request): Promise<Reply> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    this.#lastId = (this.#lastId % 0xffff_fffe) + 1;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    this.#calls.set(id, { resolve, reject });
    this.#child.stdin?.write(frame(encodeMessage(KeeperRequestSchema, { id, request })));
    return promise;
  }

  /** Lets the process go; it leaves by itself, and the sandboxes live on. */
  close(): void {
    this.#child.stdin?.end();
  }

  #receive(chunk: Buffer, onEnded: (ended: Ended) => void): void {
    try {
      for (const message of this.#replies.push(chunk)) {
        this.#settle(decodeMessage(KeeperReplySchema, message), onEnded);
      }
    } catch (thrown) {
      this.#lose(thrown instanceof Error ? thrown.message : "it cannot be understood");
      this.#child.kill("SIGKILL");
    }
  }

  #settle({ id, failure, reply }: KeeperReply, onEnded: (ended: Ended) => void): void {
    if (id === 0) {
      if (reply.case === "ended") onEnded(reply.value);
      return;
    }
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error("it answered what nobody asked");
    this.#calls.delete(id);
    if (failure === undefined) call.resolve(reply);
    else
      call.reject(new CaissonError(isErrorCode(failure.code) ? failure.code : "INTERNAL", failure.message));
  }

  #lose(why: string): void {
    this.#gone ??= new KeeperDied(`the keeper is gone: ${why}`);
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.reject(this.#gone);
  }
}
