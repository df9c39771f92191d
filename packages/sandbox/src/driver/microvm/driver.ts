import { existsSync } from "node:fs";
import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import { CachedProbe, type Tried } from "../cached-probe.ts";
import type { Capability, Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import type { Progress } from "./erofs.ts";
import { HostStamp } from "./host-stamp.ts";
import type { Shape, Template, TemplateContext } from "./template.ts";

export interface MachineOptions {
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
/** Templates of so many images are remembered at a time. */
const rememberedTemplates = 4;

/** A machine with a kernel of its own for each sandbox: copies of one that was booted once for each image. */
export abstract class MachineDriver<Ground, S extends Shape> implements Driver {
  abstract readonly name: string;
  abstract readonly capabilities: readonly Capability[];
  readonly tier = Tier.MICROVM;
  protected readonly machineOptions: MachineOptions;
  readonly #uids = new UidPool();
  readonly #tried: CachedProbe<Ground>;
  readonly #stamp: HostStamp;
  readonly #templates = new Map<string, Promise<Template<S>>>();

  /** @param programs those that templates depend on, beside the guest */
  constructor(options: MachineOptions, programs: readonly string[]) {
    this.machineOptions = options;
    this.#stamp = new HostStamp(() => [options.guest, ...programs]);
    this.#tried = new CachedProbe(() => this.tryGround());
  }

  protected abstract tryGround(): Promise<Tried<Ground>>;
  /** Does each machine get a uid of its own? */
  protected abstract givesUids(ground: Ground): boolean;
  protected abstract makeTemplate(ground: Ground, context: TemplateContext): Promise<Template<S>>;
  protected abstract start(
    ground: Ground,
    template: Template<S>,
    spec: LaunchSpec,
    uid: number | undefined,
  ): Promise<Launched>;
  protected abstract find(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined>;

  async probe(): Promise<Probe> {
    return (await this.#tried.get()).probe;
  }

  async launch(spec: LaunchSpec): Promise<Launched> {
    if (await this.#stamp.changed()) {
      // After an upgrade the next machine is a copy of another template; living ones go on.
      this.#tried.forget();
      this.#templates.clear();
    }
    const ground = await this.usableGround();
    const template = await this.#templateFor(ground, spec);
    const uid = this.givesUids(ground) ? await this.#uids.take() : undefined;
    const release = () => uid !== undefined && this.#uids.release(uid);
    try {
      const launched = await this.start(ground, template, spec, uid);
      launched.ended.then(release);
      return launched;
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  async adopt(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    this.#uids.reserve(record.uid);
    const launched = await this.find(sandboxId, record);
    if (launched === undefined) this.#uids.release(record.uid);
    else launched.ended.then(() => this.#uids.release(record.uid));
    return launched;
  }

  protected async tried(): Promise<Tried<Ground>> {
    return this.#tried.get();
  }

  protected async usableGround(): Promise<Ground> {
    const { probe, ground } = await this.#tried.get();
    if (ground !== undefined) return ground;
    throw new CaissonError("NO_DRIVER", `${this.name}: ${probe.reason}${probe.fix ? ` (${probe.fix})` : ""}`);
  }

  protected get bootContext(): TemplateContext {
    return {
      ...this.machineOptions,
      memoryBytes: this.machineOptions.memoryBytes ?? defaultMemoryBytes,
      takeUid: () => this.#uids.take(),
      releaseUid: (uid) => this.#uids.release(uid),
      progress: this.machineOptions.progress ?? (() => {}),
    };
  }

  async #templateFor(ground: Ground, { image, root, machine }: LaunchSpec): Promise<Template<S>> {
    if (image !== "host" && !root)
      throw new CaissonError("INVALID_INPUT", `the ${this.name} driver has no image "${image}"`);
    if (machine !== undefined) {
      const { templateOfSaved } = await import("./description.ts");
      return templateOfSaved(machine, await this.#remembered("host", ground, this.bootContext));
    }
    if (!root) return this.#remembered("host", ground, this.bootContext);
    const { fingerprintTree } = await import("./root-image.ts");
    const fingerprint = await fingerprintTree(root);
    return this.#remembered(fingerprint, ground, { ...this.bootContext, root: { path: root, fingerprint } });
  }

  /** Made once at a time; one that failed, or that another daemon has removed, is made again for the next who asks. */
  async #remembered(key: string, ground: Ground, context: TemplateContext): Promise<Template<S>> {
    const known = this.#templates.get(key);
    if (known) {
      const template = await known;
      if (existsSync(template.state)) return template;
      if (this.#templates.get(key) === known) this.#templates.delete(key);
      return this.#remembered(key, ground, context);
    }
    const made = this.makeTemplate(ground, context).catch((error) => {
      this.#templates.delete(key);
      throw error;
    });
    this.#templates.set(key, made);
    const ofImages = [...this.#templates.keys()].filter((other) => other !== "host");
    for (const old of ofImages.slice(0, -rememberedTemplates)) this.#templates.delete(old);
    return made;
  }
}
