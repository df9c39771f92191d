import type { Tried } from "../cached-probe.ts";
import type { Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { MachineDriver, type MachineOptions } from "../microvm/driver.ts";
import type { Template, TemplateContext } from "../microvm/template.ts";
import type { MachineShape } from "./argv.ts";
import type { Ground } from "./probe.ts";

// Loaded when somebody asks for this driver: a daemon's start does not wait for it.
const launching = () => import("./launch.ts");
const probing = () => import("./probe.ts");
const templates = () => import("./template.ts");

export interface FirecrackerOptions extends MachineOptions {
  /** Where `firecracker` and `jailer` are looked for first. */
  programs?: string;
}

/** Machines on hardware virtualisation, each in a jail. */
export class FirecrackerDriver extends MachineDriver<Ground, MachineShape> {
  readonly name = "firecracker";
  // Written after its published API description; real hardware has not been seen by those who wrote it.
  readonly capabilities = ["copies", "roots", "pause", "snapshot", "fork", "memory", "unexercised"] as const;
  readonly #programs: string | undefined;

  constructor({ programs, ...options }: FirecrackerOptions) {
    super(options, []);
    this.#programs = programs;
  }

  protected async tryGround(): Promise<Tried<Ground>> {
    const programs = this.#programs === undefined ? {} : { programs: this.#programs };
    const { probeGround } = await probing();
    return probeGround({ ...this.bootContext, ...programs });
  }

  /** The jailer needs root, so that there are always some to give. */
  protected givesUids(): boolean {
    return true;
  }

  protected async makeTemplate(ground: Ground, context: TemplateContext): Promise<Template<MachineShape>> {
    const { makeTemplate } = await templates();
    return makeTemplate({ ...context, ground });
  }

  protected async start(
    { programs }: Ground,
    template: Template<MachineShape>,
    spec: LaunchSpec,
    uid = 0,
  ): Promise<Launched> {
    const { launchFirecracker } = await launching();
    return launchFirecracker({ ...this.machineOptions, programs }, template, spec, uid);
  }

  protected async find(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined> {
    const { adoptFirecracker } = await launching();
    return adoptFirecracker(this.machineOptions.keeper, sandboxId, record);
  }
}
