import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { type Sandbox, sandboxFrom } from "../values/sandbox.ts";
import { type Snapshot, snapshotFrom } from "../values/snapshot.ts";
import { type Content, withData } from "./content.ts";

export interface TakeOptions extends CallOptions {
  /** Keep it as a template of this name. */
  template?: string | undefined;
  /** Keep the machine's memory too, running commands included. Default: false. */
  memory?: boolean | undefined;
  labels?: Record<string, string> | undefined;
}

/** Sandboxes that hold still, are kept, and are made again. Boxes go by id or `session:NAME`. */
export class Snapshots {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Stops every command until `resume`. */
  async pause(sandboxId: string, options?: CallOptions): Promise<Sandbox> {
    const call = await this.#caller.unary(
      (c) => c.SnapshotService.method.pauseSandbox,
      { sandboxId },
      options,
    );
    return sandboxFrom(found(call.sandbox));
  }

  async resume(sandboxId: string, options?: CallOptions): Promise<Sandbox> {
    const call = await this.#caller.unary(
      (c) => c.SnapshotService.method.resumeSandbox,
      { sandboxId },
      options,
    );
    return sandboxFrom(found(call.sandbox));
  }

  /** Keeps a sandbox as it is now. */
  async take(
    sandboxId: string,
    { template = "", memory = false, labels = {}, ...options }: TakeOptions = {},
  ): Promise<Snapshot> {
    const request = { sandboxId, template, memory, labels };
    const call = await this.#caller.unary((c) => c.SnapshotService.method.createSnapshot, request, options);
    return snapshotFrom(found(call.snapshot));
  }

  /** Newest first. */
  async list({
    templates = false,
    ...options
  }: CallOptions & { templates?: boolean } = {}): Promise<Snapshot[]> {
    const call = await this.#caller.unary(
      (c) => c.SnapshotService.method.listSnapshots,
      { templates },
      options,
    );
    return call.snapshots.map(snapshotFrom);
  }

  /** By id or by a template's name. */
  async get(snapshot: string, options?: CallOptions): Promise<Snapshot> {
    const call = await this.#caller.unary((c) => c.SnapshotService.method.getSnapshot, { snapshot }, options);
    return snapshotFrom(found(call.snapshot));
  }

  async delete(snapshot: string, options?: CallOptions): Promise<Snapshot> {
    const call = await this.#caller.unary(
      (c) => c.SnapshotService.method.deleteSnapshot,
      { snapshot },
      options,
    );
    return snapshotFrom(found(call.snapshot));
  }

  /** Its files as one tar archive. */
  async *export(snapshot: string, options?: CallOptions): AsyncGenerator<Uint8Array> {
    const messages = this.#caller.stream(
      (c) => c.SnapshotService.method.exportSnapshot,
      { snapshot },
      options,
    );
    for await (const { data } of messages) yield data;
  }

  /** Brings in what `export` wrote, here or elsewhere. With `memory`, a machine's memory is taken too. */
  async import(
    archive: Content,
    { template = "", memory = false, labels = {}, ...options }: TakeOptions = {},
  ): Promise<Snapshot> {
    const requests = withData({ template, memory, labels }, archive);
    const call = await this.#caller.upload((c) => c.SnapshotService.method.importSnapshot, requests, options);
    return snapshotFrom(found(call.snapshot));
  }

  /** Copies of a sandbox as it is now: with its running commands where the driver can, else with its files. */
  async fork(
    sandboxId: string,
    { count = 1, ...options }: CallOptions & { count?: number } = {},
  ): Promise<Sandbox[]> {
    const request = { sandboxId, count };
    const call = await this.#caller.unary((c) => c.SnapshotService.method.forkSandbox, request, options);
    return call.sandboxes.map(sandboxFrom);
  }
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new CaissonError("INTERNAL", "the server answered with nothing");
  return value;
}
