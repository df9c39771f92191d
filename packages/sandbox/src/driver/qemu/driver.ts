import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import { CachedProbe } from "../cached-probe.ts";
import type { Capability, Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import type { Progress } from "../microvm/host-image.ts";
import { HostStamp } from "../microvm/host-stamp.ts";
import { hasHardware, knownHardware } from "./hardware.ts";
import { adoptQemu, launchQemu } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";
import { makeTemplate, type Template, type TemplateContext } from "./template.ts";

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

const abilities = ["pause", "snapshot", "fork", "memory"] as const;
/** Where packages put it; one that is elsewhere is noticed by the host's list of packages alone. */
const qemuPath = "/usr/bin/qemu-system-x86_64";
const defaultMemoryBytes = 1024 ** 3;

/** A machine with a kernel of its own for each sandbox: copies of one that was booted once. */
export class QemuDriver implements Driver {
  readonly name = "qemu";
  readonly tier = Tier.MICROVM;
  readonly #options: QemuOptions;
  readonly #uids = new UidPool();
  readonly #tried: CachedProbe<Ground>;
  readonly #stamp: HostStamp;
  /** Until it is known otherwise, machines are emulated. */
  #hardware = false;
  #template: Promise<Template> | undefined;

  constructor(options: QemuOptions) {
    this.#options = options;
    this.#stamp = new HostStamp(() => [options.guest, qemuPath]);
    this.#tried = new CachedProbe(async () => {
      const tried = await probeGround(options.keeper);
      const { ground } = tried;
      if (ground) this.#hardware = (await knownHardware(options.store, ground.programs.qemu)) ?? false;
      return tried;
    });
  }

  get capabilities(): readonly Capability[] {
    return this.#hardware ? abilities : [...abilities, "emulated"];
  }

  async probe(): Promise<Probe> {
    return (await this.#tried.get()).probe;
  }

  async tryHardware(): Promise<void> {
    const { ground } = await this.#tried.get();
    if (ground) this.#hardware = await hasHardware(this.#contextOf(ground));
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    await this.#forgetWhatIsStale();
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

  /** After an upgrade the next machine is a copy of another template, of another kernel perhaps; living ones go on. */
  async #forgetWhatIsStale(): Promise<void> {
    if (!(await this.#stamp.changed())) return;
    this.#tried.forget();
    this.#template = undefined;
  }

  /** Made once at a time; one that failed is tried again by the next who asks. */
  #currentTemplate(ground: Ground): Promise<Template> {
    this.#template ??= this.#makeTemplate(ground).catch((error) => {
      this.#template = undefined;
      throw error;
    });
    return this.#template;
  }

  async #makeTemplate(ground: Ground): Promise<Template> {
    const template = await makeTemplate(this.#contextOf(ground));
    this.#hardware = template.shape.accel === "kvm";
    return template;
  }

  #contextOf(ground: Ground): TemplateContext {
    return {
      ...this.#options,
      ground,
      memoryBytes: this.#options.memoryBytes ?? defaultMemoryBytes,
      takeUid: async () => (ground.givesUids ? await this.#uids.take() : undefined),
      releaseUid: (uid) => this.#uids.release(uid),
      progress: this.#options.progress ?? (() => {}),
    };
  }

  async #usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#tried.get();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `qemu: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }
}
