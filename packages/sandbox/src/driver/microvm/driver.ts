import { existsSync } from "node:fs";
import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { UidPool } from "../bubblewrap/uids.ts";
import { CachedProbe, type Tried } from "../cached-probe.ts";
import type { Capability, Driver, Launched, LaunchRecord, LaunchSpec, Probe } from "../driver.ts";
import { BesideStamp } from "./beside-stamp.ts";
import type { Progress } from "./erofs.ts";
import { HostStamp } from "./host-stamp.ts";
import { MachineSizes, machineMemory } from "./sizes.ts";
import { disksOf, type Shape, type Template, type TemplateContext } from "./template.ts";
import { touchTemplate } from "./touch-template.ts";

export interface MachineOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** A directory of the daemon's alone for images and templates. */
  store: string;
  /** What a machine leaves to its sandbox, unless more is asked for. Default: 1 GiB. */
  memoryBytes?: number;
  progress?: Progress;
}

const defaultMemoryBytes = 1024 ** 3;
/** Templates of so many images and other sizes are remembered at a time. */
const rememberedTemplates = 8;
const usualTemplate = "host";

/** A machine with a kernel of its own for each sandbox: copies of one that was booted once for each image and size. */
export abstract class MachineDriver<Ground, S extends Shape> implements Driver {
  abstract readonly name: string;
  abstract readonly capabilities: readonly Capability[];
  readonly tier = Tier.MICROVM;
  readonly sizes: MachineSizes;
  protected readonly machineOptions: MachineOptions;
  readonly #programs: readonly string[];
  readonly #uids = new UidPool();
  readonly #tried: CachedProbe<Ground>;
  readonly #stamp: HostStamp;
  readonly #beside = new BesideStamp();
  readonly #templates = new Map<string, Promise<Template<S>>>();
  #preparing: string | undefined;

  /** @param programs those that templates depend on, beside the guest */
  constructor(options: MachineOptions, programs: readonly string[]) {
    this.machineOptions = options;
    this.sizes = new MachineSizes(options.memoryBytes ?? defaultMemoryBytes);
    this.#programs = programs;
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

  get preparing(): string | undefined {
    return this.#preparing;
  }

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

  async machineHost(): Promise<string> {
    const { hostIdentity } = await import("./host-identity.ts");
    return hostIdentity(this.#programs);
  }

  async mustFit(machine: string): Promise<number> {
    const ground = await this.usableGround();
    const spec = { sandboxId: "", dir: "", cgroups: [], image: "host", machine };
    return (await this.#templateFor(ground, spec)).shape.sandboxBytes;
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
      size: this.sizes.usual,
      isUsualSize: true,
      takeUid: () => this.#uids.take(),
      releaseUid: (uid) => this.#uids.release(uid),
      progress: (words) => {
        this.#preparing = words;
        this.machineOptions.progress?.(words);
      },
    };
  }

  async #templateFor(ground: Ground, spec: LaunchSpec): Promise<Template<S>> {
    const { image, root, shown = [], machine, memoryBytes } = spec;
    if (image !== "host" && !root)
      throw new CaissonError("INVALID_INPUT", `the ${this.name} driver has no image "${image}"`);
    if (machine !== undefined) return this.#templateOfSaved(ground, machine, memoryBytes ?? this.sizes.most);
    const isUsualSize = memoryBytes === undefined || memoryBytes === this.sizes.usual;
    const [ofImage, beside] = await Promise.all([
      root === undefined ? undefined : fingerprint(root),
      shown.length === 0 ? undefined : this.#beside.look(shown),
    ]);
    const context = {
      ...this.bootContext,
      ...(isUsualSize ? {} : { size: memoryBytes, isUsualSize }),
      ...(root !== undefined && ofImage !== undefined ? { root: { path: root, fingerprint: ofImage } } : {}),
      ...(beside ? { beside } : {}),
    };
    const size = isUsualSize ? undefined : memoryBytes;
    return this.#remembered(keyOf(ofImage ?? usualTemplate, size, beside?.fingerprint), ground, context);
  }

  /** Of whatever size it is: what it is compared with is a template that is there. */
  async #templateOfSaved(ground: Ground, machine: string, atMost: number): Promise<Template<S>> {
    const { readSaved, templateOfSaved } = await import("./description.ts");
    const saved = await readSaved<S>(machine, machineMemory(atMost));
    const known = await this.#templates.get(keyOf(usualTemplate, saved.shape.sandboxBytes));
    return templateOfSaved(
      machine,
      saved,
      known ?? (await this.#remembered(usualTemplate, ground, this.bootContext)),
    );
  }

  async #make(ground: Ground, context: TemplateContext): Promise<Template<S>> {
    const { openStore } = await import("./open-store.ts");
    await openStore(context.store);
    try {
      return await this.makeTemplate(ground, context);
    } finally {
      this.#preparing = undefined;
    }
  }

  /** Made once at a time; one that failed, or that another daemon has removed, is made again for the next who asks. */
  async #remembered(key: string, ground: Ground, context: TemplateContext): Promise<Template<S>> {
    const known = this.#templates.get(key);
    if (known) {
      const template = await known;
      if ([template.state, ...Object.values(disksOf(template))].every((path) => existsSync(path))) {
        if (key !== usualTemplate) void touchTemplate(template.state);
        return template;
      }
      if (this.#templates.get(key) === known) this.#templates.delete(key);
      return this.#remembered(key, ground, context);
    }
    const made = this.#make(ground, context).catch((error) => {
      this.#templates.delete(key);
      throw error;
    });
    this.#templates.set(key, made);
    const others = [...this.#templates.keys()].filter((other) => other !== usualTemplate);
    for (const old of others.slice(0, -rememberedTemplates)) this.#templates.delete(old);
    return made;
  }
}

async function fingerprint(root: string): Promise<string> {
  const { fingerprintTree } = await import("./root-image.ts");
  return fingerprintTree(root);
}

/** By which a template is remembered; of the usual size and with nothing beside the image, without them. */
function keyOf(root: string, size: number | undefined, beside?: string): string {
  return [root, ...(size === undefined ? [] : [`of ${size}`]), ...(beside ? [`with ${beside}`] : [])].join(
    " ",
  );
}
