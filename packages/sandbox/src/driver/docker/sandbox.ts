import type { Duplex } from "node:stream";
import { connectSocket } from "../../keeper/connect.ts";
import type { Keeper } from "../../keeper/index.ts";
import { openSharedSocket } from "../../link/frame/shared-read.ts";
import { stepOf } from "../describe-end.ts";
import type { Attachment, Launched, LaunchRecord, MountSource } from "../driver.ts";
import type { Engine } from "./api.ts";
import { EngineGroup } from "./group.ts";
import { remove } from "./launch.ts";
import { dockerMechanisms } from "./mechanisms.ts";
import { isAlive } from "./processes.ts";

/** How often to look whether a container lives whose engine does not answer. */
const lookEveryMs = 500;

export interface SandboxContext {
  engine: Engine;
  keeper: Keeper;
  isPodman: boolean;
  hasAppArmor: boolean;
  /** Told of a container that the engine could not remove. */
  leave(container: string): void;
}

/** A container of ours. It belongs to the engine, and lives as long as the engine lets it. */
export class DockerSandbox implements Launched {
  readonly record: LaunchRecord;
  readonly ended: Promise<string>;
  readonly cgroup: EngineGroup | undefined;
  readonly #context: SandboxContext;
  readonly #hasOwnUid: boolean;

  constructor(context: SandboxContext, record: LaunchRecord) {
    this.record = record;
    this.#context = context;
    this.#hasOwnUid = record.uid !== process.getuid?.();
    if (record.bounded) this.cgroup = EngineGroup.find(context.engine, record.container!, record.pid);
    this.ended = this.#watch();
  }

  connect(): Promise<Duplex> {
    return openSharedSocket((onread) => connectSocket(this.record.socket, { onread }));
  }

  async kill(): Promise<void> {
    await this.#remove();
    // An engine that does not answer keeps nobody alive.
    if (isAlive(this.record.pid, this.record.startTime)) process.kill(this.record.pid, "SIGKILL");
    await this.ended;
  }

  attach(sources: MountSource[]): Promise<Attachment[]> {
    const { socket, uid, gid } = this.record;
    return this.#context.keeper.attach({ socket, sources, ...(this.#hasOwnUid ? { uid, gid } : {}) });
  }

  mechanisms() {
    const { isPodman, hasAppArmor } = this.#context;
    return dockerMechanisms(isPodman ? "podman" : "docker", this.#hasOwnUid, hasAppArmor);
  }

  async #remove(): Promise<void> {
    const { container } = this.record;
    if (!(await remove(this.#context.engine, container!))) this.#context.leave(container!);
  }

  /** The engine tells when a container ends; while it is away, the container's first process does. */
  async #watch(): Promise<string> {
    const { container, pid, startTime } = this.record;
    while (true) {
      try {
        const path = `/containers/${container}/wait`;
        const { status, body } = await this.#context.engine.call({
          method: "POST",
          path,
          accept: [404],
          timeoutMs: 0,
        });
        if (status === 404) return "the container is gone";
        await this.#remove();
        return describe(Number((body as { StatusCode?: unknown } | undefined)?.StatusCode));
      } catch {
        if (!isAlive(pid, startTime)) {
          await this.#remove();
          return "the container is gone, and the Docker engine does not answer";
        }
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs).unref());
      }
    }
  }
}

function describe(code: number): string {
  if (code === 0) return "the guest left by itself";
  if (code > 128) return `the guest was killed by signal ${code - 128}`;
  const step = stepOf(code);
  return step === undefined
    ? `the container ended with code ${code}`
    : `the guest failed at ${step} (ended with code ${code})`;
}
