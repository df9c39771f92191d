import { realpathSync, statSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";
import { Mount_Kind } from "@caisson/contract/link";
import { canMapOwners, type ToolchainSet } from "../toolchains/index.ts";
import type { SandboxPlan } from "./spec.ts";
import type { MountPlan, ResolvedWorkspace } from "./workspace.ts";

/** What is handed in of a developer's toolchains: read-only, at their own paths. */
export function toolchainMounts(
  toolchains: ToolchainSet | undefined,
  workspace: ResolvedWorkspace,
  mapOwner: boolean,
): MountPlan {
  const found = (toolchains?.binds ?? [])
    // What lies in the project comes with the project.
    .filter((path) => !isInside(path, workspace.dir))
    .flatMap((path) => {
      const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (!stats) return [];
      const real = realpathSync.native(path);
      return [{ real, place: { path, device: stats.dev, inode: stats.ino, isFile: stats.isFile() } }];
    });
  return {
    sources: found.map(({ real }) => ({
      path: real,
      readOnly: true,
      mapOwner: mapOwner && canMapOwners(real),
      refuseNested: false,
    })),
    mounts: found.map(({ place }) => ({ ...place, kind: Mount_Kind.BIND, readOnly: true })),
  };
}

/** The same for drivers that can only show what is known at the launch. */
export function shownOf(toolchains: ToolchainSet | undefined, workspace: ResolvedWorkspace): string[] {
  return (toolchains?.binds ?? []).filter((path) => !isInside(path, workspace.dir)).sort();
}

/** Files inside of toolchains that no command may read. */
export function coveredConfigs(toolchains: ToolchainSet | undefined, workspace: ResolvedWorkspace): string[] {
  return (toolchains?.covers ?? []).filter((path) => !isInside(path, workspace.dir));
}

/** For the report: which toolchains came in, and how. */
export function toolchainMechanism({
  driver: { capabilities },
  toolchains,
  toolchainsLeftOut,
}: Pick<SandboxPlan, "driver" | "toolchains" | "toolchainsLeftOut">): Mechanism {
  const name = "toolchains";
  const canCopy = capabilities.includes("copies");
  if (toolchainsLeftOut) {
    const why = canCopy ? "they are copied for those who ask for them" : "this driver cannot show them";
    const detail = `${why}: ${toolchainsLeftOut.join(", ") || "the PATH uses none"}`;
    return create(MechanismSchema, { name, state: MechanismState.NOT_ENFORCED, detail });
  }
  if (!toolchains)
    return create(MechanismSchema, { name, state: MechanismState.OFF, detail: "none are shown" });
  const found = toolchains.names.join(", ");
  return create(MechanismSchema, {
    name,
    state: MechanismState.ENFORCED,
    by: canCopy ? "read-only disk" : "read-only mounts",
    detail: found ? `${found}; credentials and configuration are left out` : "the PATH uses none",
  });
}

function isInside(path: string, dir: string): boolean {
  return dir !== "" && (path === dir || path.startsWith(`${dir}/`));
}
