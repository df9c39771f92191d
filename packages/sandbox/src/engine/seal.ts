import { MechanismState } from "@caisson/contract";
import type { SealInit } from "../link/guest.ts";
import { tierName } from "../profiles/index.ts";
import type { Box } from "./box.ts";
import { gitConfig } from "./git.ts";
import { imageEnv } from "./image.ts";
import { envList, hostnameOf, inside, insidePath, sandboxEnv } from "./inside.ts";
import { hostTrust } from "./network/host-trust.ts";
import type { SandboxPlan } from "./spec.ts";
import { coveredConfigs } from "./toolchains.ts";

/** Everything that a guest must know to close the wall. */
export function sealOf(box: Box, plan: SandboxPlan, mounts: NonNullable<SealInit["mounts"]>): SealInit {
  return {
    mounts,
    ...(plan.driver.surroundings ? { surroundings: plan.driver.surroundings } : {}),
    hostname: hostnameOf(box.id),
    uid: inside.uid,
    gid: inside.gid,
    user: inside.user,
    home: inside.home,
    workdir: box.record.workdir,
    env: envList(
      sandboxEnv(
        box.id,
        plan.profile,
        // What stands for a secret is not replaced by anything that was given.
        { ...plan.spec.env, ...plan.secrets?.env },
        {
          ...imageEnv(plan.image),
          ...hostTrust(plan.image),
          ...plan.toolchains?.env,
          ...plan.network.presetEnv,
        },
      ),
    ),
    tmpfsBytes: BigInt(plan.limits.diskBytes),
    // One for every four kilobytes: empty files take memory too.
    tmpfsInodes: BigInt(Math.ceil(plan.limits.diskBytes / 4096)),
    syscalls: plan.syscalls,
    denyRead: [...plan.profile.denyRead.map(insidePath), ...coveredConfigs(plan.toolchains, plan.workspace)],
    allowWrite: plan.profile.allowWrite.map(insidePath),
    rlimits: { openFiles: BigInt(plan.limits.openFiles), processes: BigInt(plan.limits.pids) },
    etc: { gitconfig: gitConfig(plan.spec.git) },
    required: [],
    description: {
      id: box.id,
      tier: tierName(box.record.tier),
      driver: box.record.driver,
      profile: box.record.profile,
      holds: box.launched!.mechanisms().map(({ name, state, by, detail }) => ({
        name,
        enforced: state === MechanismState.ENFORCED,
        by,
        detail,
      })),
    },
  };
}
