import { MechanismState } from "@caisson/contract";
import type { SealInit } from "../link/guest.ts";
import { hostnameOf } from "../pool/sandbox-id.ts";
import { tierName } from "../profiles/index.ts";
import { cacheEnv } from "./caches.ts";
import { gitConfig } from "./git.ts";
import { imageEnv } from "./image.ts";
import { envList, inside, insidePath, sandboxEnv } from "./inside.ts";
import { hostTrust } from "./network/host-trust.ts";
import { workdirOf } from "./new-record.ts";
import type { Taken } from "./parts.ts";
import type { SandboxPlan } from "./spec.ts";
import { coveredConfigs } from "./toolchains.ts";

/** Everything that a guest must know to close the wall. */
export function sealOf(
  { id, launched }: Pick<Taken, "id" | "launched">,
  plan: SandboxPlan,
  mounts: NonNullable<SealInit["mounts"]>,
): SealInit {
  return {
    mounts,
    ...(plan.driver.surroundings ? { surroundings: plan.driver.surroundings } : {}),
    hostname: hostnameOf(id),
    uid: inside.uid,
    gid: inside.gid,
    user: inside.user,
    home: inside.home,
    workdir: workdirOf(plan),
    env: envList(
      sandboxEnv(
        id,
        plan.profile,
        // What stands for a secret is not replaced by anything that was given.
        { ...plan.spec.env, ...plan.secrets?.env },
        {
          ...imageEnv(plan.image),
          ...hostTrust(plan.image),
          ...plan.toolchains?.env,
          ...plan.network.presetEnv,
          ...cacheEnv(plan.caches),
        },
      ),
    ),
    tmpfsBytes: BigInt(plan.limits.diskBytes),
    // One for every four kilobytes: empty files take memory too.
    tmpfsInodes: BigInt(Math.ceil(plan.limits.diskBytes / 4096)),
    syscalls: plan.syscalls,
    denyRead: deniedPaths(plan),
    allowWrite: plan.profile.allowWrite.map(insidePath),
    rlimits: { openFiles: BigInt(plan.limits.openFiles), processes: BigInt(plan.limits.pids) },
    etc: { gitconfig: gitConfig(plan.spec.git) },
    required: [],
    description: {
      id,
      tier: tierName(plan.driver.tier),
      driver: plan.driver.name,
      profile: plan.profile.name,
      holds: launched.mechanisms().map(({ name, state, by, detail }) => ({
        name,
        enforced: state === MechanismState.ENFORCED,
        by,
        detail,
      })),
    },
  };
}

/** What may not be read inside. */
export function deniedPaths(plan: Pick<SandboxPlan, "profile" | "toolchains" | "workspace">): string[] {
  return [...plan.profile.denyRead.map(insidePath), ...coveredConfigs(plan.toolchains, plan.workspace)];
}
