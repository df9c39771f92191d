import type { Limits, SandboxSpec, Workspace } from "@caisson/client";
import type { OptionTable, Values } from "../command/option.ts";
import { UsageError } from "../command/usage-error.ts";
import type { Host } from "../io/host.ts";
import type { Io } from "../io/io.ts";
import { networkFrom, networkOptions } from "./network-options.ts";

/** What a sandbox is made from: the options that `run` and `create` share. */
export const specOptions = {
  workspace: {
    kind: "text",
    value: "DIR|none",
    summary: "Project to attach. Default: the current directory",
  },
  mode: {
    kind: "choice",
    choices: ["overlay", "copy", "bind", "bind-write", "none"],
    summary:
      "How: writes stay aside, a copy, read-only, the project itself, or not at all. Default: overlay, or copy where that is all there is",
  },
  "no-workspace": { kind: "flag", summary: "Attach no project; the same as --workspace none" },
  tier: {
    kind: "choice",
    choices: ["container", "gvisor", "microvm", "strongest", "docker", "firecracker"],
    summary:
      "The least isolation that will do; docker means container, firecracker microvm. Default: container",
  },
  driver: { kind: "text", value: "NAME", summary: "A driver by name instead of a choice by tier" },
  profile: {
    kind: "text",
    value: "NAME",
    summary: "What is allowed inside; see `caisson profile ls`. Default: moderate",
  },
  image: {
    kind: "text",
    value: "IMAGE|DIR",
    summary: "What its programs are: `host`, an imported image, or a directory. Default: host",
  },
  snapshot: {
    kind: "text",
    value: "ID",
    summary: "Begin with what a snapshot holds; see `caisson snapshot ls`",
  },
  template: {
    kind: "text",
    value: "NAME",
    summary: "Begin with what a template holds; see `caisson template ls`",
  },
  toolchains: {
    kind: "choice",
    choices: ["auto", "off"],
    summary: "Show the toolchains of the host that your PATH uses. Default: the profile's; `off` in microVMs",
  },
  ...networkOptions,
  secret: {
    kind: "text",
    many: true,
    value: "NAME",
    summary: "Give it a secret; see `caisson secret ls`",
  },
  "git-name": { kind: "text", value: "NAME", summary: "Who commits inside; with --git-email" },
  "git-email": { kind: "text", value: "ADDRESS", summary: "The address of who commits inside" },
  cache: {
    kind: "choice",
    many: true,
    choices: ["npm", "cargo", "pip", "go", "maven", "all", "claude", "codex", "gemini"],
    summary: "Keep a private cache, or an agent's own directory, for this project",
  },
  memory: { kind: "size", short: "m", summary: "Memory" },
  cpus: { kind: "number", summary: "Processors, such as 1.5" },
  pids: { kind: "int", summary: "Processes and threads" },
  disk: { kind: "size", summary: "Bytes in each private writable mount, and written to the project" },
  label: { kind: "text", short: "l", many: true, value: "KEY=VALUE", summary: "Label the sandbox" },
  "idle-ttl": { kind: "duration", summary: "End it when nothing has run in it for so long. Default: 1h" },
  "max-age": { kind: "duration", summary: "End it at this age. Default: 24h" },
  agent: { kind: "text", value: "KIND", summary: "What kind of agent works here, such as claude-code" },
} as const satisfies OptionTable;

export type SpecValues = Values<typeof specOptions>;

export interface ChosenSpec {
  spec: SandboxSpec;
  /** The workspace is the current directory because nothing else was said: if it is refused, none will do. */
  workspaceIsDefault: boolean;
  /** Why there is no workspace although none was asked for, if so. */
  note?: string | undefined;
}

/** The spec that the options describe. */
export function specFrom(values: SpecValues, io: Io, host: Host): ChosenSpec {
  const spec: SandboxSpec = {};
  if (values.tier) spec.tier = values.tier;
  if (values.driver) spec.driver = values.driver;
  if (values.profile) spec.profile = values.profile;
  if (values.image) spec.image = imageFrom(values.image, io);
  if (values.agent) spec.agent = values.agent;
  if (values.snapshot !== undefined && values.template !== undefined) {
    throw new UsageError("only one of --snapshot and --template");
  }
  const snapshot = values.snapshot ?? values.template;
  if (snapshot) spec.snapshot = snapshot;
  if (values.toolchains) spec.toolchains = values.toolchains;
  const network = networkFrom(values);
  if (network) spec.network = network;
  if (values.secret.length > 0) spec.secrets = values.secret;
  const git = { name: values["git-name"] ?? "", email: values["git-email"] ?? "" };
  if (git.name !== "" || git.email !== "") spec.git = git;
  if (values.cache.length > 0) spec.caches = [...values.cache];
  if (values["idle-ttl"]) spec.idleTtl = values["idle-ttl"];
  if (values["max-age"]) spec.maxAge = values["max-age"];
  const limits: Limits = { memory: values.memory, cpus: values.cpus, pids: values.pids, disk: values.disk };
  if (Object.values(limits).some((limit) => limit !== undefined)) spec.limits = limits;
  if (values.label.length > 0) spec.labels = labelsFrom(values.label);
  const chosen = snapshot ? workspaceOfSnapshot(values, io) : workspaceFrom(values, io, host);
  const { workspace, workspaceIsDefault = false, note } = chosen;
  if (workspace) spec.workspace = workspace;
  return { spec, workspaceIsDefault, note };
}

/** A directory is named by a path with a slash at its beginning, or after dots. */
function imageFrom(image: string, io: Io): string {
  return /^\.{0,2}\//.test(image) ? resolve(io.cwd, image) : image;
}

export function labelsFrom(words: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const word of words) {
    const equals = word.indexOf("=");
    if (equals < 1 || word.startsWith("__proto__="))
      throw new UsageError(`--label: ${word} is not KEY=VALUE`);
    labels[word.slice(0, equals)] = word.slice(equals + 1);
  }
  return labels;
}

interface ChosenWorkspace {
  workspace?: Workspace;
  workspaceIsDefault?: boolean;
  note?: string;
}

/** A snapshot brings its own project; one that was imported needs to be told where that is. */
export function workspaceOfSnapshot(
  values: Pick<SpecValues, "workspace" | "mode"> & { "no-workspace"?: boolean },
  io: Pick<Io, "cwd">,
): ChosenWorkspace {
  if (values.workspace === undefined && values.mode !== undefined && values.mode !== "none")
    throw new UsageError("a snapshot has its project's mode: --mode goes with --workspace");
  if (values.workspace === undefined || values.workspace === "none" || values["no-workspace"]) return {};
  const mode = values.mode === undefined ? {} : { mode: values.mode };
  return { workspace: { dir: resolve(io.cwd, values.workspace), ...mode } };
}

function workspaceFrom(values: SpecValues, io: Io, host: Host): ChosenWorkspace {
  const none = values["no-workspace"] || values.workspace === "none" || values.mode === "none";
  if (none) {
    if (values.workspace !== undefined && values.workspace !== "none") {
      throw new UsageError("--workspace names a directory that --mode none or --no-workspace leaves out");
    }
    return {};
  }
  const mode = values.mode === undefined ? {} : { mode: values.mode };
  if (values.workspace !== undefined)
    return { workspace: { dir: resolve(io.cwd, values.workspace), ...mode } };
  const refusal = host.sharesFiles ? refusedByDefault(io) : "the daemon is on another machine";
  if (refusal) return { note: `no project is attached: ${refusal}` };
  return { workspace: { dir: io.cwd, ...mode }, workspaceIsDefault: values.mode === undefined };
}

/** Why the current directory is no project. The daemon has the last word; this only saves asking. */
function refusedByDefault({ cwd, env }: Io): string | undefined {
  if (cwd === "") return "the current directory is gone, or its name is not UTF-8";
  if (cwd === "/") return "the current directory is /";
  const home = env.HOME;
  if (home && (home === cwd || home.startsWith(`${cwd}/`)))
    return "the current directory is, or contains, your home";
  return undefined;
}

/** An absolute path without `.` and `..`, by names alone. */
export function resolve(cwd: string, path: string): string {
  const segments: string[] = [];
  for (const segment of (path.startsWith("/") ? path : `${cwd}/${path}`).split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}`;
}
