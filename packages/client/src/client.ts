import { Approvals } from "./api/approvals.ts";
import type { Box } from "./api/box.ts";
import { type ExecOptions, runCommand, startCommand } from "./api/commands.ts";
import { Events } from "./api/events.ts";
import { Images } from "./api/images.ts";
import { Keys } from "./api/keys.ts";
import { NetworkLog } from "./api/network.ts";
import type { Result } from "./api/result.ts";
import type { Run } from "./api/run.ts";
import { Sandboxes } from "./api/sandboxes.ts";
import { Secrets } from "./api/secrets.ts";
import { Sessions } from "./api/sessions.ts";
import { Snapshots } from "./api/snapshots.ts";
import { System } from "./api/system.ts";
import { Caller, type CallerOptions } from "./call/caller.ts";
import type { OnceOptions } from "./call/options.ts";
import type { SandboxSpec } from "./values/sandbox.ts";

/** A command and the fresh sandbox it gets. */
export interface RunOptions extends ExecOptions {
  /** What the sandbox is made from. `env` beside it is the command's. */
  spec?: SandboxSpec | undefined;
  /** Run in this session's sandbox, which is made if need be and stays. */
  session?: string | undefined;
}

/** A daemon to talk to. */
export class Client {
  readonly sandboxes: Sandboxes;
  readonly sessions: Sessions;
  readonly events: Events;
  readonly system: System;
  readonly keys: Keys;
  readonly network: NetworkLog;
  readonly approvals: Approvals;
  readonly secrets: Secrets;
  readonly images: Images;
  readonly snapshots: Snapshots;
  readonly #caller: Caller;

  constructor(options: CallerOptions) {
    this.#caller = new Caller(options);
    this.sandboxes = new Sandboxes(this.#caller);
    this.sessions = new Sessions(this.#caller);
    this.events = new Events(this.#caller);
    this.system = new System(this.#caller);
    this.keys = new Keys(this.#caller);
    this.network = new NetworkLog(this.#caller);
    this.secrets = new Secrets(this.#caller);
    this.approvals = new Approvals(this.#caller, this.events);
    this.images = new Images(this.#caller);
    this.snapshots = new Snapshots(this.#caller);
  }

  /** Makes a sandbox; short for `sandboxes.create`. */
  create(spec?: SandboxSpec, options?: OnceOptions): Promise<Box> {
    return this.sandboxes.create(spec, options);
  }

  /** Runs one command to its end in a fresh sandbox that ends with it. */
  run(argv: string[], { spec = {}, session = "", ...options }: RunOptions = {}): Promise<Result> {
    return runCommand(this.#caller, { spec, session }, argv, options);
  }

  /** The same with a handle to the running command. */
  exec(argv: string[], { spec = {}, session = "", ...options }: RunOptions = {}): Promise<Run> {
    return startCommand(this.#caller, { spec, session }, argv, options);
  }

  /** Closes the connections. Sandboxes and commands go on. */
  close(): Promise<void> {
    return this.#caller.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
