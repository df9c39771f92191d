import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions, OnceOptions } from "../call/options.ts";
import { toSeconds } from "../values/numbers.ts";
import { type Process, processFrom } from "../values/process.ts";
import { type Sandbox, type Stats, sandboxFrom, statsFrom } from "../values/sandbox.ts";
import { type ExecOptions, runCommand, startCommand } from "./commands.ts";
import { Files } from "./files.ts";
import { BoxNetwork } from "./network.ts";
import { Ports } from "./ports.ts";
import type { Result } from "./result.ts";
import { Run } from "./run.ts";
import { Workspace } from "./workspace.ts";

/** A sandbox to work in. `await using` ends it with its scope. */
export class Box {
  readonly id: string;
  readonly files: Files;
  readonly workspace: Workspace;
  readonly network: BoxNetwork;
  readonly ports: Ports;
  readonly #caller: Caller;
  #info: Sandbox;

  constructor(caller: Caller, info: Sandbox) {
    this.#caller = caller;
    this.#info = info;
    this.id = info.id;
    this.files = new Files(caller, info.id);
    this.workspace = new Workspace(caller, info.id);
    this.network = new BoxNetwork(caller, info.id);
    this.ports = new Ports(caller, info.id);
  }

  /** What was last heard about it; `refresh` asks again. */
  get info(): Sandbox {
    return this.#info;
  }

  /** Starts a command and returns its handle once it runs. */
  exec(argv: string[], options?: ExecOptions): Promise<Run> {
    return startCommand(this.#caller, { sandboxId: this.id }, argv, options);
  }

  /** Runs a command to its end and returns output and exit: one call, the fastest way. */
  run(argv: string[], options?: ExecOptions): Promise<Result> {
    return runCommand(this.#caller, { sandboxId: this.id }, argv, options);
  }

  /** A handle to a command that was started before, by anybody. */
  process(processId: string): Run {
    return Run.existing(this.#caller, { sandboxId: this.id, id: processId });
  }

  /** All its commands, also those that have ended, in the order of their start. */
  async processes(options?: CallOptions): Promise<Process[]> {
    const request = { sandboxId: this.id };
    const { processes } = await this.#caller.unary(
      (c) => c.ProcessService.method.listProcesses,
      request,
      options,
    );
    return processes.map(processFrom);
  }

  async refresh(options?: CallOptions): Promise<Sandbox> {
    const answer = await this.#caller.unary(
      (c) => c.SandboxService.method.getSandbox,
      { sandboxId: this.id },
      options,
    );
    return this.#take(answer);
  }

  async stats(options?: CallOptions): Promise<Stats> {
    const request = { sandboxId: this.id };
    const { stats } = await this.#caller.unary(
      (c) => c.SandboxService.method.getSandboxStats,
      request,
      options,
    );
    if (!stats) throw new CaissonError("INTERNAL", "the server answered without the statistics");
    return statsFrom(stats);
  }

  /** Changes how long it may live; both in milliseconds, `maxAge` counted from its creation. */
  async extend(
    change: OnceOptions & { idleTtl?: number | undefined; maxAge?: number | undefined },
  ): Promise<Sandbox> {
    const request = {
      sandboxId: this.id,
      idempotencyKey: this.#caller.key(change),
      idleTtlS: toSeconds(change.idleTtl),
      maxAgeS: toSeconds(change.maxAge),
    };
    return this.#take(
      await this.#caller.unary((c) => c.SandboxService.method.extendSandbox, request, change),
    );
  }

  /** Ends it. With `forget`, its record and kept output go as well. */
  async delete(options: OnceOptions & { forget?: boolean } = {}): Promise<Sandbox> {
    const request = {
      sandboxId: this.id,
      idempotencyKey: this.#caller.key(options),
      forget: options.forget ?? false,
    };
    return this.#take(
      await this.#caller.unary((c) => c.SandboxService.method.deleteSandbox, request, options),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.delete();
    } catch (thrown) {
      const { code } = CaissonError.from(thrown);
      if (code !== "SANDBOX_NOT_FOUND" && code !== "SANDBOX_ENDED") throw thrown;
    }
  }

  #take({ sandbox }: { sandbox?: Parameters<typeof sandboxFrom>[0] | undefined }): Sandbox {
    if (sandbox) this.#info = sandboxFrom(sandbox);
    return this.#info;
  }
}
