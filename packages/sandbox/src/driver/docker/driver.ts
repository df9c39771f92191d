import { hash, randomUUID } from "node:crypto";
import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { type Bounder, engineGroup } from "../../limits/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import { CachedProbe } from "../cached-probe.ts";
import type { Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import { Leftovers } from "./leftovers.ts";
import type { Ground, ProbeContext } from "./probe.ts";

// Loaded when somebody asks for this driver: a daemon's start does not wait for it.
const api = () => import("./api.ts");
const launching = () => import("./launch.ts");
const probing = () => import("./probe.ts");

export interface DockerOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** The data directory. */
  home: string;
  /** Where the engine is asked; throws with a clear word. */
  engineSocket(): string;
}

const boundByEngine: Bounder = { by: engineGroup, controls: { memory: true, pids: true, cpu: true } };

/** Containers of a Docker engine, or of Podman: theirs around, the same namespaces and wall as everywhere inside. */
export class DockerDriver implements Driver {
  readonly name = "docker";
  readonly tier = Tier.CONTAINER;
  readonly capabilities = ["pause", "snapshot", "fork", "mounts", "overlay", "roots"] as const;
  readonly #context: ProbeContext;
  readonly #uids = new UidPool();
  readonly #leftovers: Leftovers;
  readonly #tried: CachedProbe<Ground>;
  #bounder: Bounder | undefined;

  constructor({ keeper, guest, home, engineSocket }: DockerOptions) {
    const marks = { home: hash("sha256", home).slice(0, 16), daemon: randomUUID() };
    this.#leftovers = new Leftovers(marks);
    const leave = (container: string) => this.#leftovers.add(container);
    this.#context = { keeper, guest, directory: home, ...marks, leave, engineSocket };
    this.#tried = new CachedProbe(async () => {
      const { probeGround } = await probing();
      const tried = await probeGround(this.#context);
      this.#bounder = tried.ground?.bounds ? boundByEngine : undefined;
      return tried;
    });
  }

  /** The engine, where it was seen to bound containers. */
  get bounder(): Bounder | undefined {
    return this.#bounder;
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
      const { startContainer } = await launching();
      const launched = await startContainer(context, spec, uid);
      launched.ended.then(release);
      void this.#leftovers.remove(ground.engine).catch(() => {});
      return launched;
    } catch (thrown) {
      release();
      // An engine that was stopped is looked for again by whoever asks next.
      if (CaissonError.from(thrown).code === "UNAVAILABLE") this.#tried.forget();
      throw thrown;
    }
  }

  async adopt(_sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    if (record.driver !== this.name || !record.container || !record.engine) return undefined;
    this.#uids.reserve(record.uid);
    const [{ Engine }, { adoptContainer }] = await Promise.all([api(), launching()]);
    const engine = new Engine(record.engine);
    const launched = await adoptContainer({ ...this.#context, engine }, record);
    if (launched === undefined) this.#uids.release(record.uid);
    else launched.ended.then(() => this.#uids.release(record.uid));
    return launched;
  }

  async sweep(living: ReadonlySet<string>): Promise<void> {
    this.#leftovers.addUnknown(living);
    try {
      const socket = this.#context.engineSocket();
      const { Engine } = await api();
      await this.#leftovers.remove(new Engine(socket));
    } catch {
      // There is none, or it is somewhere else: they are removed when one answers.
    }
  }

  async #usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#tried.get();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `docker: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }
}
