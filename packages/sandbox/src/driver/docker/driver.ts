import { hash, randomUUID } from "node:crypto";
import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import { CachedProbe } from "../cached-probe.ts";
import type { Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import { labels } from "./container.ts";
import { adoptContainer, remove, startContainer } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";

export interface DockerOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** The data directory. */
  home: string;
}

/** Containers of a Docker engine, or of Podman: theirs around, the same namespaces and wall as everywhere inside. */
export class DockerDriver implements Driver {
  readonly name = "docker";
  readonly tier = Tier.CONTAINER;
  readonly capabilities = ["mounts", "overlay", "roots"] as const;
  readonly #context: DockerOptions & { daemon: string };
  readonly #uids = new UidPool();
  readonly #tried: CachedProbe<Ground>;

  constructor(options: DockerOptions) {
    const context = { ...options, home: hash("sha256", options.home).slice(0, 16), daemon: randomUUID() };
    this.#context = context;
    this.#tried = new CachedProbe(() => probeGround(context));
  }

  async probe(): Promise<Probe> {
    return (await this.#tried.get()).probe;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    const ground = await this.#usableGround();
    const context = { ...this.#context, ground };
    const uid = ground.givesUids ? await this.#uids.take() : undefined;
    const release = () => uid !== undefined && this.#uids.release(uid);
    try {
      const launched = await startContainer(context, spec, uid);
      launched.ended.then(release);
      return launched;
    } catch (thrown) {
      release();
      // An engine that was stopped is looked for again by whoever asks next.
      if (CaissonError.from(thrown).code === "UNAVAILABLE") this.#tried.forget();
      throw thrown;
    }
  }

  async adopt(_sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    if (record.driver !== this.name || !record.container) return undefined;
    const { ground } = await this.#tried.get();
    if (ground === undefined) return undefined;
    this.#uids.reserve(record.uid);
    const launched = await adoptContainer({ ...this.#context, ...ground }, record);
    if (launched === undefined) this.#uids.release(record.uid);
    else launched.ended.then(() => this.#uids.release(record.uid));
    return launched;
  }

  async sweep(living: ReadonlySet<string>): Promise<void> {
    const { ground } = await this.#tried.get();
    if (ground === undefined) return;
    const filters = JSON.stringify({ label: [`${labels.home}=${this.#context.home}`] });
    const call = { method: "GET" as const, path: "/containers/json", query: { all: "1", filters } };
    const { body } = await ground.engine.call(call);
    for (const found of Array.isArray(body) ? body : []) {
      const { Id, Labels = {} } = found as { Id: string; Labels?: Record<string, string> };
      const isOurs = Labels[labels.daemon] === this.#context.daemon;
      if (!isOurs && !living.has(Labels[labels.sandbox] ?? "")) await remove(ground.engine, Id);
    }
  }

  async #usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#tried.get();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `docker: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }
}
