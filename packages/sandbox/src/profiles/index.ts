import { create } from "@bufbuild/protobuf";
import { CaissonError, type NetworkMode, type Profile, ProfileSchema } from "@caisson/contract";
import { networkModes } from "../egress/index.ts";
import { type LimitValues, toLimits } from "../limits/index.ts";
import { type AgentRule, agentRules } from "./agents.ts";
import { builtinProfiles } from "./builtin.ts";
import { customProfile } from "./custom.ts";
import { explainProfile } from "./explain.ts";
import { defaultProfileName, type SandboxProfile } from "./profile.ts";

export { type AgentRule, tierName, tierNames } from "./agents.ts";
export {
  isSyscallGroup,
  isToolchainMode,
  type SandboxProfile,
  syscallGroups,
  toolchainModes,
} from "./profile.ts";

/** What most sandboxes will have: set before anybody waits for one. */
export const preparedLimits: LimitValues = builtinProfiles.find(
  ({ name }) => name === defaultProfileName,
)!.limits;

/** All profiles and the rules by which kinds of agents get them. */
export class Profiles {
  readonly #profiles = new Map<string, SandboxProfile>();
  readonly #agents: ReadonlyMap<string, AgentRule>;

  /** `profiles` and `agents` as in the configuration. A profile may extend one that comes before it. */
  constructor(profiles: Record<string, unknown> = {}, agents: Record<string, unknown> = {}) {
    for (const profile of builtinProfiles) this.#profiles.set(profile.name, profile);
    for (const [name, value] of Object.entries(profiles)) {
      if (this.#profiles.has(name)) {
        throw new CaissonError(
          "CONFIG_INVALID",
          `profiles.${name} exists already; choose another name and extend it`,
        );
      }
      this.#profiles.set(name, customProfile(name, value, this.#profiles));
    }
    this.#agents = agentRules(agents, (name) => this.#profiles.has(name));
  }

  /** By name; empty for the default. */
  get(name: string): SandboxProfile {
    const profile = this.#profiles.get(name || defaultProfileName);
    if (profile) return profile;
    throw new CaissonError(
      "INVALID_INPUT",
      `there is no profile ${JSON.stringify(name)}; there are ${[...this.#profiles.keys()].join(", ")}`,
    );
  }

  /** What a kind of agent gets at least, if there is a rule for it. */
  ruleFor(agent: string): AgentRule | undefined {
    return this.#agents.get(agent);
  }

  list(): Profile[] {
    return [...this.#profiles.values()].map((profile) =>
      create(ProfileSchema, {
        name: profile.name,
        description: profile.description,
        limits: toLimits(profile.limits),
        syscalls: [...profile.syscalls],
        denyRead: [...profile.denyRead],
        allowWrite: [...profile.allowWrite],
        env: { ...profile.env },
        network: profile.network,
        networkRules: {
          mode: (networkModes.indexOf(profile.network) + 1) as NetworkMode,
          allow: [...profile.networkRules.allow],
          deny: [...profile.networkRules.deny],
          presets: [...profile.networkRules.presets],
        },
        toolchains: profile.toolchains,
        secrets: [...profile.secrets],
        caches: [...profile.caches],
        explained: explainProfile(profile),
      }),
    );
  }
}
