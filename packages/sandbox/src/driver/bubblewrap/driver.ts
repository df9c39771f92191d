import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { CachedProbe } from "../cached-probe.ts";
import type { Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import { adoptBubblewrap, launchBubblewrap } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";
import { UidPool } from "./uids.ts";

export interface BubblewrapOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
}

/** Namespaces by bubblewrap: no root, no service, a few milliseconds. */
export class BubblewrapDriver implements Driver {
  readonly name = "bubblewrap";
  readonly tier = Tier.CONTAINER;
  readonly capabilities = ["pause", "snapshot", "fork", "mounts", "overlay", "roots"] as const;
  readonly #options: BubblewrapOptions;
  readonly #uids = new UidPool();
  readonly #tried: CachedProbe<Ground>;

  constructor(options: BubblewrapOptions) {
    this.#options = options;
    this.#tried = new CachedProbe(() => probeGround(options.keeper));
  }

  async probe(): Promise<Probe> {
    return (await this.#tried.get()).probe;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    const ground = await this.#usableGround();
    const context = { ...this.#options, ground };
    if (!ground.givesUids) return await launchBubblewrap(context, spec);
    const uid = await this.#uids.take();
    try {
      const launched = await launchBubblewrap(context, spec, uid);
      launched.ended.then(() => this.#uids.release(uid));
      return launched;
    } catch (thrown) {
      this.#uids.release(uid);
      throw thrown;
    }
  }

  async adopt(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    this.#uids.reserve(record.uid);
    const launched = await adoptBubblewrap(this.#options.keeper, sandboxId, record);
    if (launched === undefined) this.#uids.release(record.uid);
    else launched.ended.then(() => this.#uids.release(record.uid));
    return launched;
  }

  async #usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#tried.get();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `bubblewrap: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }
}
