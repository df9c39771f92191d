import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import type { Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import type { Progress } from "../microvm/host-image.ts";
import { adoptQemu, launchQemu } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";
import { makeTemplate, type Template } from "./template.ts";

export interface QemuOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** A directory of the daemon's alone for images and templates. */
  store: string;
  /** Of each machine. Default: 1 GiB. */
  memoryBytes?: number;
  progress?: Progress;
}

const defaultMemoryBytes = 1024 ** 3;

/** A machine with a kernel of its own for each sandbox: copies of one that was booted once. */
export class QemuDriver implements Driver {
  readonly name = "qemu";
  readonly tier = Tier.MICROVM;
  readonly capabilities = ["pause", "snapshot", "fork", "memory", "emulated"] as const;
  readonly #options: QemuOptions;
  readonly #uids = new UidPool();
  #probing: ReturnType<typeof probeGround> | undefined;
  #template: Promise<Template> | undefined;

  constructor(options: QemuOptions) {
    this.#options = options;
  }

  async probe(): Promise<Probe> {
    return (await this.#probeGround()).probe;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    const ground = await this.#usableGround();
    const template = await this.#currentTemplate(ground);
    const context = { ...this.#options, ground };
    const uid = ground.givesUids ? await this.#uids.take() : undefined;
    const release = () => uid !== undefined && this.#uids.release(uid);
    try {
      const launched = await launchQemu(context, template, spec, uid);
      launched.ended.then(release);
      return launched;
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  async adopt(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    this.#uids.reserve(record.uid);
    const launched = await adoptQemu(this.#options.keeper, sandboxId, record);
    if (launched === undefined) this.#uids.release(record.uid);
    else launched.ended.then(() => this.#uids.release(record.uid));
    return launched;
  }

  /** Made once at a time; one that failed is tried again by the next who asks. */
  #currentTemplate(ground: Ground): Promise<Template> {
    this.#template ??= this.#makeTemplate(ground).catch((error) => {
      this.#template = undefined;
      throw error;
    });
    return this.#template;
  }

  #makeTemplate(ground: Ground): Promise<Template> {
    return makeTemplate({
      ...this.#options,
      ground,
      memoryBytes: this.#options.memoryBytes ?? defaultMemoryBytes,
      takeUid: async () => (ground.givesUids ? await this.#uids.take() : undefined),
      releaseUid: (uid) => this.#uids.release(uid),
      progress: this.#options.progress ?? (() => {}),
    });
  }

  /** A good answer holds for the daemon's life; a bad one may have been mended by the next time. */
  #probeGround(): ReturnType<typeof probeGround> {
    this.#probing ??= probeGround(this.#options.keeper).then(
      (result) => {
        if (!result.probe.usable) this.#probing = undefined;
        return result;
      },
      (thrown) => {
        this.#probing = undefined;
        throw thrown;
      },
    );
    return this.#probing;
  }

  async #usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#probeGround();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `qemu: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }
}
