import type { Tried } from "../cached-probe.ts";
import type { Capability, Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { MachineDriver, type MachineOptions } from "../microvm/driver.ts";
import type { Template, TemplateContext } from "../microvm/template.ts";
import type { MachineShape } from "./argv.ts";
import { hasHardware, knownHardware } from "./hardware.ts";
import { adoptQemu, launchQemu } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";
import { makeTemplate } from "./template.ts";

export type QemuOptions = MachineOptions;

const abilities = ["roots", "pause", "snapshot", "fork", "memory"] as const;
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
    if (ground) this.#hardware = await hasHardware({ ...lending(this.bootContext, ground), ground });
  }

  protected async tryGround(): Promise<Tried<Ground>> {
    const { keeper, store } = this.machineOptions;
    const tried = await probeGround(keeper);
    const { ground } = tried;
    if (ground) this.#hardware = (await knownHardware(store, ground.programs.qemu)) ?? false;
    return tried;
  }

  protected givesUids({ givesUids }: Ground): boolean {
    return givesUids;
  }

  protected async makeTemplate(ground: Ground, context: TemplateContext): Promise<Template<MachineShape>> {
    const template = await makeTemplate({ ...lending(context, ground), ground });
    this.#hardware = template.shape.accel === "kvm";
    return template;
  }

  protected start(
    ground: Ground,
    template: Template<MachineShape>,
    spec: LaunchSpec,
    uid: number | undefined,
  ): Promise<Launched> {
    return launchQemu({ ...this.machineOptions, ground }, template, spec, uid);
  }

  protected find(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    return adoptQemu(this.machineOptions.keeper, sandboxId, record);
  }
}

/** Only a daemon of root's gives machines uids of their own. */
function lending(context: TemplateContext, { givesUids }: Ground): TemplateContext {
  return { ...context, takeUid: async () => (givesUids ? await context.takeUid() : undefined) };
}
