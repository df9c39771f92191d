import type { Tried } from "../cached-probe.ts";
import type { Capability, Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { MachineDriver, type MachineOptions } from "../microvm/driver.ts";
import type { Template, TemplateContext } from "../microvm/template.ts";
import type { MachineShape } from "./argv.ts";
import type { Ground } from "./probe.ts";

// Loaded when somebody asks for this driver: a daemon's start does not wait for it.
const hardware = () => import("./hardware.ts");
const launching = () => import("./launch.ts");
const probing = () => import("./probe.ts");
const templates = () => import("./template.ts");

export type QemuOptions = MachineOptions;

const abilities = ["copies", "roots", "pause", "snapshot", "fork", "memory"] as const;
/** Where packages put it; one that is elsewhere is noticed by the host's list of packages alone. */
const qemuPath = "/usr/bin/qemu-system-x86_64";

/** Machines played by QEMU, on hardware virtualisation where that works, else emulated. */
export class QemuDriver extends MachineDriver<Ground, MachineShape> {
  readonly name = "qemu";
  /** Until it is known otherwise, machines are emulated. */
  #hardware = false;

  constructor(options: QemuOptions) {
    super(options, [qemuPath]);
  }

  get capabilities(): readonly Capability[] {
    return this.#hardware ? abilities : [...abilities, "emulated"];
  }

  async tryHardware(): Promise<void> {
    const { ground } = await this.tried();
    if (!ground) return;
    const { hasHardware } = await hardware();
    this.#hardware = await hasHardware({ ...lending(this.bootContext, ground), ground });
  }

  protected async tryGround(): Promise<Tried<Ground>> {
    const { keeper, store } = this.machineOptions;
    const { probeGround } = await probing();
    const { knownHardware } = await hardware();
    const tried = await probeGround(keeper);
    const { ground } = tried;
    if (ground) this.#hardware = (await knownHardware(store, ground.programs.qemu)) ?? false;
    return tried;
  }

  protected givesUids({ givesUids }: Ground): boolean {
    return givesUids;
  }

  protected async makeTemplate(ground: Ground, context: TemplateContext): Promise<Template<MachineShape>> {
    const { makeTemplate } = await templates();
    const template = await makeTemplate({ ...lending(context, ground), ground });
    this.#hardware = template.shape.accel === "kvm";
    return template;
  }

  protected async start(
    ground: Ground,
    template: Template<MachineShape>,
    spec: LaunchSpec,
    uid: number | undefined,
  ): Promise<Launched> {
    const { launchQemu } = await launching();
    return launchQemu({ ...this.machineOptions, ground }, template, spec, uid);
  }

  protected async find(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    const { adoptQemu } = await launching();
    return adoptQemu(this.machineOptions.keeper, sandboxId, record);
  }
}

/** Only a daemon of root's gives machines uids of their own. */
function lending(context: TemplateContext, { givesUids }: Ground): TemplateContext {
  return { ...context, takeUid: async () => (givesUids ? await context.takeUid() : undefined) };
}
