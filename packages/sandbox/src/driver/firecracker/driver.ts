import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import { CachedProbe } from "../cached-probe.ts";
import type { Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import type { Progress } from "../microvm/host-image.ts";
import { HostStamp } from "../microvm/host-stamp.ts";
import { adoptFirecracker, launchFirecracker } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";
import { makeTemplate, type Template } from "./template.ts";

export interface FirecrackerOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** A directory of the daemon's alone for images and templates. */
  store: string;
  /** Of each machine. Default: 1 GiB. */
  memoryBytes?: number;
  progress?: Progress;
  /** Where `firecracker` and `jailer` are looked for first. */
  programs?: string;
}

const defaultMemoryBytes = 1024 ** 3;

/** A machine on hardware virtualisation for each sandbox: copies of one that was booted once, each in a jail. */
export class FirecrackerDriver implements Driver {
  readonly name = "firecracker";
  readonly tier = Tier.MICROVM;
  // Written after its published API description; real hardware has not been seen by those who wrote it.
  readonly capabilities = ["pause", "snapshot", "fork", "memory", "unexercised"] as const;
  readonly #options: FirecrackerOptions;
  readonly #uids = new UidPool();
  readonly #tried: CachedProbe<Ground>;
  readonly #stamp: HostStamp;
  #template: Promise<Template> | undefined;

  constructor(options: FirecrackerOptions) {
    this.#options = options;
    this.#stamp = new HostStamp(() => [options.guest]);
    this.#tried = new CachedProbe(() => probeGround({ ...options, ...this.#lending }));
  }

  async probe(): Promise<Probe> {
    return (await this.#tried.get()).probe;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    if (await this.#stamp.changed()) {
      // After an upgrade the next machine is a copy of another template; living ones go on.
      this.#tried.forget();
      this.#template = undefined;
    }
    const { programs, template } = await this.#ready();
    const uid = await this.#uids.take();
    try {
      const launched = await launchFirecracker({ ...this.#options, programs }, template, spec, uid);
      launched.ended.then(() => this.#uids.release(uid));
      return launched;
    } catch (thrown) {
      this.#uids.release(uid);
      throw thrown;
    }
  }

  async adopt(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    this.#uids.reserve(record.uid);
    const launched = await adoptFirecracker(this.#options.keeper, sandboxId, record);
    if (launched === undefined) this.#uids.release(record.uid);
    else launched.ended.then(() => this.#uids.release(record.uid));
    return launched;
  }

  async #ready(): Promise<Ground & { template: Template }> {
    const { probe, ground } = await this.#tried.get();
    if (ground === undefined) {
      throw new CaissonError(
        "NO_DRIVER",
        `firecracker: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`,
      );
    }
    // Made once at a time; one that failed is tried again by the next who asks.
    this.#template ??= this.#makeTemplate(ground).catch((error) => {
      this.#template = undefined;
      throw error;
    });
    return { ...ground, template: await this.#template };
  }

  #makeTemplate(ground: Ground): Promise<Template> {
    return makeTemplate({
      ...this.#options,
      ...this.#lending,
      ground,
      programs: ground.programs,
      memoryBytes: this.#options.memoryBytes ?? defaultMemoryBytes,
      progress: this.#options.progress ?? (() => {}),
    });
  }

  get #lending() {
    return { takeUid: () => this.#uids.take(), releaseUid: (uid: number) => this.#uids.release(uid) };
  }
}
