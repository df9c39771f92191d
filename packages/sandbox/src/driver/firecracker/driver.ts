import type { Tried } from "../cached-probe.ts";
import type { Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { MachineDriver, type MachineOptions } from "../microvm/driver.ts";
import type { Template, TemplateContext } from "../microvm/template.ts";
import type { MachineShape } from "./argv.ts";
import { adoptFirecracker, launchFirecracker } from "./launch.ts";
import { type Ground, probeGround } from "./probe.ts";
import { makeTemplate } from "./template.ts";

export interface FirecrackerOptions extends MachineOptions {
  /** Where `firecracker` and `jailer` are looked for first. */
  programs?: string;
}

/** Machines on hardware virtualisation, each in a jail. */
export class FirecrackerDriver extends MachineDriver<Ground, MachineShape> {
  readonly name = "firecracker";
  // Written after its published API description; real hardware has not been seen by those who wrote it.
  readonly capabilities = ["roots", "pause", "snapshot", "fork", "memory", "unexercised"] as const;
  readonly #programs: string | undefined;

  constructor({ programs, ...options }: FirecrackerOptions) {
    super(options, []);
    this.#programs = programs;
  }

  protected tryGround(): Promise<Tried<Ground>> {
    const programs = this.#programs === undefined ? {} : { programs: this.#programs };
    return probeGround({ ...this.bootContext, ...programs });
  }

  /** The jailer needs root, so that there are always some to give. */
  protected givesUids(): boolean {
    return true;
  }

  protected makeTemplate(ground: Ground, context: TemplateContext): Promise<Template<MachineShape>> {
    return makeTemplate({ ...context, ground });
  }

  protected start(
    { programs }: Ground,
    template: Template<MachineShape>,
    spec: LaunchSpec,
    uid = 0,
  ): Promise<Launched> {
    return launchFirecracker({ ...this.machineOptions, programs }, template, spec, uid);
  }

  protected find(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    return adoptFirecracker(this.machineOptions.keeper, sandboxId, record);
  }
}
