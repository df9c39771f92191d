import type { Kind } from "../pool/entry.ts";
import type { SandboxPlan } from "./spec.ts";
import { shownOf } from "./toolchains.ts";

/** Which of the pool's sandboxes will do. Where images come in later, one kind serves them all. */
export function kindOf({ driver, image, toolchains, workspace, machineMemory }: SandboxPlan): Kind {
  const kind = { driver: driver.name, image: image ? "bare" : "host" };
  if (driver.capabilities.includes("mounts")) return kind;
  return {
    ...kind,
    shown: shownOf(toolchains, workspace),
    ...(image ? { root: image.root } : {}),
    ...(machineMemory === undefined ? {} : { memoryBytes: machineMemory }),
  };
}
