import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions, OnceOptions } from "../call/options.ts";
import { type Sandbox, type SandboxSpec, sandboxFrom, specInit } from "../values/sandbox.ts";
import { Box } from "./box.ts";

export interface ListOptions extends CallOptions {
  /** Only those that carry all of these. */
  labels?: Record<string, string> | undefined;
  /** Also ended ones. Default: false. */
  all?: boolean | undefined;
}

export class Sandboxes {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Makes a sandbox and returns when it is ready; with `wait: false`, also when it is queued. */
  async create(spec: SandboxSpec = {}, options: OnceOptions & { wait?: boolean } = {}): Promise<Box> {
    const key = this.#caller.key(options);
    const request = { idempotencyKey: key, spec: specInit(spec), noWait: options.wait === false };
    const answer = await this.#caller.unary((c) => c.SandboxService.method.createSandbox, request, options, {
      key,
    });
    return this.#box(answer.sandbox);
  }

  /** One sandbox, living or ended, by its id or as `session:NAME`. */
  async get(id: string, options?: CallOptions): Promise<Box> {
    const answer = await this.#caller.unary(
      (c) => c.SandboxService.method.getSandbox,
      { sandboxId: id },
      options,
    );
    return this.#box(answer.sandbox);
  }

  /** A handle without asking whether it is there. */
  at(id: string): Box {
    return new Box(this.#caller, { ...unknown, id });
  }

  /** Newest first; asks for page after page as the loop goes on. */
  async *list({ labels = {}, all = false, ...options }: ListOptions = {}): AsyncGenerator<Sandbox> {
    let pageToken = "";
    do {
      const request = { labels, all, pageSize: 0, pageToken };
      const page = await this.#caller.unary((c) => c.SandboxService.method.listSandboxes, request, options);
      yield* page.sandboxes.map(sandboxFrom);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** Ends a sandbox. With `forget`, its record and kept output go as well. */
  delete(id: string, options?: OnceOptions & { forget?: boolean }): Promise<Sandbox> {
    return this.at(id).delete(options);
  }

  #box(sandbox: Parameters<typeof sandboxFrom>[0] | undefined): Box {
    if (!sandbox) throw new CaissonError("INTERNAL", "the server answered without the sandbox");
    return new Box(this.#caller, sandboxFrom(sandbox));
  }
}

/** What is known of a sandbox that was only named. */
const unknown: Omit<Sandbox, "id"> = {
  session: "",
  state: "ready",
  endReason: "",
  endMessage: "",
  tier: "container",
  driver: "",
  profile: "",
  image: "",
  workspace: undefined,
  workdir: "",
  labels: {},
  enforced: undefined,
  createdAt: undefined,
  readyAt: undefined,
  endedAt: undefined,
  expiresAt: undefined,
  seq: 0,
  agent: "",
  paused: false,
  network: undefined,
};
