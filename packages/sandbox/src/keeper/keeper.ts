import { readFile, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { CaissonError } from "@caisson/contract/errors";
import type { Attachment, AttachSchema, Ended, Identity, LaunchSchema } from "@caisson/contract/keeper";
import { Channel, KeeperDied, type Reply, type Request } from "./channel.ts";

export interface KeeperOptions {
  /** The path of the guest binary, which is the keeper's too. */
  guest: string;
  /** Somebody else to run as; only root can. Default: as the daemon. */
  runAs?: { uid: number; gid: number };
}

export type LaunchInit = MessageInitShape<typeof LaunchSchema> & {
  sandbox: string;
  socket: string;
  log: string;
};
export type AttachInit = MessageInitShape<typeof AttachSchema>;

/** A sandbox's outer process, named for ever by its number and the time it started. */
export interface OuterProcess {
  pid: number;
  startTime: bigint;
}

export interface Kept extends OuterProcess {
  /** Resolves when the sandbox is gone, whoever ended it. Code -1 without a signal: nobody knows how. */
  readonly ended: Promise<Ended>;
}

interface Known {
  process?: OuterProcess;
  ended: PromiseWithResolvers<Ended>;
}

type Value<Case extends Reply["case"]> = Extract<Reply, { case: Case }>["value"];

/** A keeper that does not live this long was not of use. */
const healthyAfterMs = 5000;
const maxRestartWaitMs = 5000;

/**
 * The daemon's side of the keeper: requests with answers, and word of every sandbox that ends. A keeper
 * that dies is replaced by another one, which watches the same sandboxes.
 */
export class Keeper {
  readonly #options: KeeperOptions;
  readonly #sandboxes = new Map<string, Known>();
  #channel: Promise<Channel> | undefined;
  #identity: Identity | undefined;
  #failures = 0;
  #closing = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Starts a sandbox. The `ended` of the result settles in any case, also when the keeper is replaced. */
  async launch(init: LaunchInit): Promise<Kept> {
    if (this.#sandboxes.has(init.sandbox)) {
      throw new CaissonError("INVALID_INPUT", "a sandbox of that name is running");
    }
    const known: Known = { ended: Promise.withResolvers<Ended>() };
    this.#sandboxes.set(init.sandbox, known);
    try {
      const { pid, startTime } = await this.#ask({ case: "launch", value: init }, "launched");
      known.process = { pid, startTime };
      return { pid, startTime, ended: known.ended.promise };
    } catch (thrown) {
      this.#sandboxes.delete(init.sandbox);
      if (!(thrown instanceof KeeperDied)) throw thrown;
      await this.#undo(init);
      throw unavailable(thrown);
    }
  }

  /** Watches a sandbox that an earlier daemon started; undefined when it is gone. */
  async adopt(sandbox: string, process: OuterProcess): Promise<Kept | undefined> {
    const known = this.#sandboxes.get(sandbox) ?? { ended: Promise.withResolvers<Ended>() };
    known.process ??= process;
    this.#sandboxes.set(sandbox, known);
    const value = { sandbox, pid: process.pid, startTime: process.startTime };
    const { alive } = await this.#askAgain({ case: "adopt", value }, "adopted");
    if (alive) return { ...process, ended: known.ended.promise };
    this.#hasEnded({ sandbox, code: -1, signal: 0 });
    return undefined;
  }

  /** Ends everything in a sandbox at once; resolves when it is gone. */
  async kill(sandbox: string): Promise<void> {
    try {
      await this.#askAgain({ case: "kill", value: { sandbox } }, "ended");
    } catch (thrown) {
      if (!(thrown instanceof CaissonError) || thrown.code !== "SANDBOX_NOT_FOUND") throw thrown;
    }
  }

  /** Hands mounts to a guest that is not sealed yet. Sources are real paths, without links in them. */
  async attach(init: AttachInit): Promise<Attachment[]> {
    try {
      return (await this.#ask({ case: "attach", value: init }, "attached")).attachments;
    } catch (thrown) {
      throw thrown instanceof KeeperDied ? unavailable(thrown) : thrown;
    }
  }

  /** Removes a directory and everything in it, whoever owns it; resolves with the bytes freed. */
  async removeTree(path: string): Promise<bigint> {
    const value = { path: await realName(path) };
    return (await this.#askAgain({ case: "removeTree", value }, "removed")).bytes;
  }

  async treeSize(path: string): Promise<{ bytes: bigint; files: bigint }> {
    return await this.#askAgain({ case: "treeSize", value: { path: await realName(path) } }, "size");
  }

  /** Gives a machine's monitor a new file to write; the monitor keeps it in a set of that number. */
  async giveToMonitor(socket: string, set: number, path: string): Promise<void> {
    try {
      await this.#ask({ case: "giveToMonitor", value: { socket, set, path } }, "given");
    } catch (thrown) {
      throw thrown instanceof KeeperDied ? unavailable(thrown) : thrown;
    }
  }

  /**
   * Copies the memory of a machine that stands still into a new file; `held`: the copy stays with the keeper, and the file
   * stands for it.
   */
  async keepMemory(sandbox: string, path: string, memory: { size: number; held: boolean }): Promise<void> {
    const value = { sandbox, path, held: memory.held, size: BigInt(memory.size) };
    try {
      await this.#ask({ case: "keepMemory", value }, "memoryKept");
    } catch (thrown) {
      throw thrown instanceof KeeperDied ? unavailable(thrown) : thrown;
    }
  }

  /** What the keeper may do on this machine. A good answer is remembered, a bad one may have been mended. */
  async identity(): Promise<Identity> {
    this.#identity ??= await this.#askAgain({ case: "identify", value: {} }, "identity");
    const identity = this.#identity;
    if (!identity.userNamespaces) this.#identity = undefined;
    return identity;
  }

  /** Lets the keeper go. The sandboxes live on. */
  async close(): Promise<void> {
    this.#closing = true;
    const channel = await this.#channel?.catch(() => undefined);
    channel?.close();
    await channel?.closed;
  }

  async #ask<Case extends Exclude<Reply["case"], undefined>>(
    request: Request,
    wanted: Case,
  ): Promise<Value<Case>> {
    const channel = await this.#open();
    const reply = await channel.call(request);
    if (reply.case !== wanted) throw new CaissonError("INTERNAL", "the keeper answered something else");
    return reply.value as Value<Case>;
  }

  /** For what may be done twice: asks the next keeper when one dies. */
  async #askAgain<Case extends Exclude<Reply["case"], undefined>>(
    request: Request,
    wanted: Case,
  ): Promise<Value<Case>> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#ask(request, wanted);
      } catch (thrown) {
        if (!(thrown instanceof KeeperDied)) throw thrown;
        if (attempt === 3 || this.#closing) throw unavailable(thrown);
      }
    }
  }

  #open(): Promise<Channel> {
    if (this.#closing) return Promise.reject(new KeeperDied("the keeper was let go"));
    this.#channel ??= this.#start();
    return this.#channel;
  }

  async #start(): Promise<Channel> {
    if (this.#failures > 0) await sleep(Math.min(50 * 2 ** this.#failures, maxRestartWaitMs));
    const channel = new Channel(this.#options, (ended) => this.#hasEnded(ended));
    const started = performance.now();
    channel.closed.then(() => {
      this.#failures = performance.now() - started < healthyAfterMs ? this.#failures + 1 : 0;
      this.#channel = undefined;
      // Somebody must go on watching what lives; what died meanwhile must be told.
      if (!this.#closing && this.#sandboxes.size > 0) this.#open().catch(() => {});
    });
    await this.#adoptAll(channel);
    return channel;
  }

  /** A new keeper learns of all sandboxes before it is asked anything else. */
  async #adoptAll(channel: Channel): Promise<void> {
    await Promise.allSettled(
      [...this.#sandboxes].map(async ([sandbox, { process }]) => {
        if (process === undefined) return;
        const reply = await channel.call({ case: "adopt", value: { sandbox, ...process } });
        if (reply.case === "adopted" && !reply.value.alive) this.#hasEnded({ sandbox, code: -1, signal: 0 });
      }),
    );
  }

  #hasEnded(ended: Pick<Ended, "sandbox" | "code" | "signal">): void {
    const known = this.#sandboxes.get(ended.sandbox);
    this.#sandboxes.delete(ended.sandbox);
    known?.ended.resolve(ended as Ended);
  }

  /** The keeper died in the middle of a launch: if something was started, it must not stay. */
  async #undo({ sandbox, log }: LaunchInit): Promise<void> {
    const process = await launchedProcess(log);
    if (process === undefined || this.#closing) return;
    if ((await this.adopt(sandbox, process)) !== undefined) await this.kill(sandbox);
  }
}

/** What a launch log says about the process that was started, for when nothing else does. */
export async function launchedProcess(log: string): Promise<OuterProcess | undefined> {
  const text = await readFile(log, "utf8").catch(() => "");
  const found = /^launched ([0-9]{1,10}) ([0-9]{1,19})\n/.exec(text);
  return found === null ? undefined : { pid: Number(found[1]), startTime: BigInt(found[2] as string) };
}

/** The same name in its real directory: the keeper follows no link, and data directories may lie behind one. */
async function realName(path: string): Promise<string> {
  if (!isAbsolute(path)) return path;
  const directory = await realpath(dirname(path)).catch(() => dirname(path));
  return join(directory, basename(path));
}

function unavailable(cause: KeeperDied): CaissonError {
  return new CaissonError("UNAVAILABLE", cause.message, { cause });
}
