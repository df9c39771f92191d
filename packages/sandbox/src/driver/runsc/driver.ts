import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import { Surroundings } from "@caisson/contract/link";
import type { Keeper } from "../../keeper/index.ts";
import { CachedProbe } from "../cached-probe.ts";
import type { Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import type { Ground } from "./probe.ts";

// Loaded when somebody asks for this driver: a daemon's start does not wait for it.
const launching = () => import("./launch.ts");
const probing = () => import("./probe.ts");

export interface RunscOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** The daemon's directory. */
  home: string;
}

/** A kernel of its own by gVisor: no root, no service, a fifth of a second. */
export class RunscDriver implements Driver {
  readonly name = "runsc";
  readonly tier = Tier.GVISOR;
  readonly capabilities = ["pause", "snapshot", "fork", "binds", "roots"] as const;
  readonly surroundings = Surroundings.GVISOR;
  readonly cannotCountProcesses = true;
  readonly #options: RunscOptions;
  readonly #tried: CachedProbe<Ground>;

  constructor(options: RunscOptions) {
    this.#options = options;
    this.#tried = new CachedProbe(async () => (await probing()).probeGround(options.home));
  }

  async probe(): Promise<Probe> {
    return (await this.#tried.get()).probe;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    const ground = await this.#usableGround();
    const { launchRunsc } = await launching();
    return launchRunsc({ ...this.#options, ground }, spec);
  }

  async adopt(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    const rootless = process.getuid?.() !== 0;
    // What it runs on was found by an earlier daemon, on this same machine.
    const { ground } = await this.#tried.get();
    const platform = ground?.platform ?? "ptrace";
    const { adoptRunsc } = await launching();
    return adoptRunsc(this.#options.keeper, sandboxId, record, { platform, rootless });
  }

  async #usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#tried.get();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `runsc: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }
}
