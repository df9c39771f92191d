import { create, toJson } from "@bufbuild/protobuf";
import {
  CaissonError,
  type Mechanism,
  rules,
  type SandboxSpec,
  SandboxSpecSchema,
  Tier,
} from "@caisson/contract";
import type { Capability, Driver } from "../driver/driver.ts";
import {
  type FoundCgroups,
  type LimitValues,
  mergeLimits,
  planLimits,
  requestedLimits,
  withoutCounting,
} from "../limits/index.ts";
import {
  isSyscallGroup,
  isToolchainMode,
  type Profiles,
  type SandboxProfile,
  syscallGroups,
  toolchainModes,
} from "../profiles/index.ts";
import type { SandboxSecrets } from "../secrets/sandbox-secrets.ts";
import type { ToolchainSet } from "../toolchains/index.ts";
import { type CacheKind, cacheKinds } from "./caches.ts";
import type { SpecInit } from "./engine.ts";
import { checkIdentity } from "./git.ts";
import type { ResolvedImage } from "./image.ts";
import { insidePath } from "./inside.ts";
import { fitMachine, insideMachine } from "./machine-memory.ts";
import { type NetworkPlanning, type NetworkRecord, planNetwork } from "./network/index.ts";
import type { SnapshotRecord } from "./snapshots/record.ts";
import { fitWorkspace, type ResolvedWorkspace, resolveWorkspace } from "./workspace.ts";

/** A spec with everything decided that can be decided before a sandbox is there. */
export interface SandboxPlan {
  spec: SandboxSpec;
  /** The spec as it was asked for, as JSON of the contract. */
  asked: unknown;
  driver: Driver;
  profile: SandboxProfile;
  limits: LimitValues;
  limitMechanisms: Mechanism[];
  /** How much memory its machine is to leave to it, where the driver's usual one is too small. */
  machineMemory: number | undefined;
  /** Whose files it begins with. */
  snapshot?: SnapshotRecord;
  workspace: ResolvedWorkspace;
  /** What the root is made from; undefined: the host's own programs. */
  image: ResolvedImage | undefined;
  /** Private caches of the project's that come in. */
  caches: CacheKind[];
  syscalls: string[];
  /** What comes in of the developer's toolchains; undefined when they are switched off. */
  toolchains: ToolchainSet | undefined;
  /** Where the driver does not show them: which there are. */
  toolchainsLeftOut: readonly string[] | undefined;
  network: NetworkRecord;
  secrets: SandboxSecrets | undefined;
  idleTtlS: number;
  maxAgeS: number;
}

export interface PlanningParts {
  home: string;
  /** The spec's workspace, where somebody has begun to look at it already. */
  workspace?: Promise<ResolvedWorkspace>;
  profiles: Profiles;
  cgroups: FoundCgroups;
  /** The fastest usable driver at or above a tier, or the one that is named. */
  chooseDriver(name: string, minimum: Tier, needs: readonly Capability[]): Promise<Driver>;
  findImage(name: string): Promise<ResolvedImage | undefined>;
  /** By the project's directory. */
  network(projectDir: string): NetworkPlanning;
  /** Rejects if one of them is not there. */
  grantSecrets(names: readonly string[], allowWrite: readonly string[]): Promise<SandboxSecrets | undefined>;
  /** The toolchains of whoever asks. */
  findToolchains(): Promise<ToolchainSet | undefined>;
  /** Asks whether an agent may have another profile than its rule gives; refuses by throwing. */
  askForProfile?(agent: string, profile: string, ruled: string): Promise<void>;
}

/** Checks a spec and completes it by profile and rules. */
export async function planSandbox(init: SpecInit, parts: PlanningParts): Promise<SandboxPlan> {
  const spec = create(SandboxSpecSchema, init);
  checkSpec(spec);
  const rule = parts.profiles.ruleFor(spec.agent);
  const profile = parts.profiles.get(await ruledProfile(spec, rule?.profile ?? "", parts));
  const requested = requestedLimits(spec.limits);
  const wanted = mergeLimits(requested, profile.limits);
  const minimum = Math.max(spec.minimumTier, rule?.minimumTier ?? 0, Tier.CONTAINER) as Tier;
  const hasImage = spec.image !== "" && spec.image !== "host";
  // Programs of the host need not run on an image's libraries: they come in only when they are asked for.
  const wantsToolchains = (spec.toolchains || (hasImage ? "off" : profile.toolchains)) === "auto";
  const [driver, image, workspace, toolchains, network, secrets] = await Promise.all([
    parts.chooseDriver(spec.driver, minimum, hasImage ? ["roots"] : []),
    hasImage ? parts.findImage(spec.image) : undefined,
    parts.workspace ?? resolveWorkspace(spec.workspace, parts.home),
    wantsToolchains ? parts.findToolchains() : undefined,
    planNetwork(spec.network, profile, parts.network(spec.workspace?.dir ?? "")),
    parts.grantSecrets(spec.secrets, profile.allowWrite.map(insidePath)),
  ]);
  checkImage(image, driver);
  const { limits, machineMemory } = fitMachine(driver, wanted, requested);
  const planned = planLimits(limits, requested, parts.cgroups, driver.bounder);
  const limitMechanisms = insideMachine(driver, planned);
  return {
    spec,
    asked: toJson(SandboxSpecSchema, spec),
    driver,
    profile,
    limits,
    limitMechanisms: driver.cannotCountProcesses
      ? withoutCounting(limitMechanisms, requested)
      : limitMechanisms,
    machineMemory,
    workspace: fitWorkspace(workspace, driver),
    image,
    ...fitToolchains(toolchains, driver, spec.toolchains === "auto"),
    network,
    secrets,
    caches: cacheKinds(spec.caches, workspace, driver),
    syscalls: [...new Set([...profile.syscalls, ...spec.syscalls])],
    idleTtlS: spec.idleTtlS || rules.times.idle_ttl_s,
    maxAgeS: spec.maxAgeS || rules.times.max_age_s,
  };
}

/** A directory of somebody's may change while it is looked at; only mounts that are handed in stay what they were. */
function checkImage(image: ResolvedImage | undefined, driver: Driver): void {
  if (image?.id !== "" || driver.capabilities.includes("mounts")) return;
  const words = `${driver.name} takes imported images, not directories: \`caisson image import\` makes one`;
  throw new CaissonError("NOT_ENFORCEABLE", words, { metadata: { mechanism: "image" } });
}

/**
 * Where they would have to be copied first, they are for those who ask for them; the report tells others what is not there. Asked for
 * where they cannot be had, they are an error.
 */
function fitToolchains(
  toolchains: ToolchainSet | undefined,
  { name, capabilities }: Driver,
  areAskedFor: boolean,
): Pick<SandboxPlan, "toolchains" | "toolchainsLeftOut"> {
  const canCopy = capabilities.includes("copies");
  if (capabilities.includes("mounts") || capabilities.includes("binds") || (canCopy && areAskedFor))
    return { toolchains, toolchainsLeftOut: undefined };
  const names = toolchains?.names;
  if (!areAskedFor || names === undefined || names.length === 0)
    return { toolchains: undefined, toolchainsLeftOut: names };
  throw new CaissonError(
    "NOT_ENFORCEABLE",
    `the ${name} driver shows nothing of the host outside its image: ${names.join(", ")}`,
    { metadata: { rule: "toolchains" } },
  );
}

/** A rule's profile holds for its kind of agent; a request may name the same one, another only if it is approved. */
async function ruledProfile(spec: SandboxSpec, ruled: string, parts: PlanningParts): Promise<string> {
  if (ruled === "" || spec.profile === "" || spec.profile === ruled) return ruled || spec.profile;
  if (parts.askForProfile) {
    await parts.askForProfile(spec.agent, parts.profiles.get(spec.profile).name, ruled);
    return spec.profile;
  }
  throw new CaissonError("POLICY_FORBIDS", `agents of kind ${spec.agent} get the profile ${ruled}`);
}

function checkSpec(spec: SandboxSpec): void {
  if (Buffer.byteLength(spec.image) > rules.paths.max_bytes || /[\0-\x1f\x7f]/.test(spec.image))
    throw invalid("image", "must be `host`, the name of an image, or a directory");
  if (!Object.values<number>(Tier).includes(spec.minimumTier)) throw invalid("minimum_tier", "is not a tier");
  for (const group of spec.syscalls) {
    if (!isSyscallGroup(group)) throw invalid("syscalls", `knows ${syscallGroups.join(" and ")}`);
  }
  if (spec.toolchains !== "" && !isToolchainMode(spec.toolchains))
    throw invalid("toolchains", `can be ${toolchainModes.join(" or ")}`);
  if (!/^[A-Za-z0-9._-]{0,64}$/.test(spec.agent))
    throw invalid("agent", "must be up to 64 characters of `[A-Za-z0-9._-]`");
  checkIdentity(spec.git);
  checkLabels(spec.labels);
  checkEnv(spec.env, "spec.env");
}

function checkLabels(labels: Record<string, string>): void {
  const entries = Object.entries(labels);
  if (entries.length > rules.sizes.labels) throw invalid("labels", `may be at most ${rules.sizes.labels}`);
  for (const [key, value] of entries) {
    if (!/^[a-z0-9._/-]{1,63}$/.test(key))
      throw invalid("labels", "must have keys of 1 to 63 characters of `[a-z0-9._/-]`");
    if (Buffer.byteLength(value) > 255) throw invalid("labels", "must have values of at most 255 bytes");
  }
}

const maxEnvBytes = 128 * 1024;

/** Variables that can be handed to a program. */
export function checkEnv(env: Record<string, string>, field: string): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(env)) {
    if (!/^[^=\0]+$/.test(name) || value.includes("\0")) {
      throw new CaissonError("INVALID_INPUT", `${field} has a name that is empty or holds \`=\`, or a NUL`);
    }
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  }
  if (bytes > maxEnvBytes)
    throw new CaissonError("TOO_LARGE", `${field} is larger than ${maxEnvBytes} bytes`);
}

function invalid(field: string, why: string): CaissonError {
  return new CaissonError("INVALID_INPUT", `spec.${field} ${why}`);
}
