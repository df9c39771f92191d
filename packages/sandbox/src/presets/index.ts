import { CaissonError } from "@caisson/contract";
import { addressRules, type LookUp } from "./addresses.ts";
import {
  isPresetName,
  type Preset,
  type PresetName,
  type PresetSource,
  presetNames,
  type ResolvedPreset,
} from "./preset.ts";
import type { ToldFile } from "./told.ts";

export {
  isPresetName,
  type PresetHost,
  type PresetName,
  type PresetSource,
  presetNames,
  type ResolvedPreset,
} from "./preset.ts";
export type { ToldFile } from "./told.ts";

/** Each is loaded when somebody asks for it. */
const presets: Readonly<Record<PresetName, () => Promise<Preset>>> = {
  npm: async () => (await import("./npm.ts")).npm,
  pip: async () => (await import("./pip.ts")).pip,
  cargo: async () => (await import("./cargo.ts")).cargo,
  go: async () => (await import("./go.ts")).go,
  maven: async () => (await import("./maven.ts")).maven,
  git: async () => (await import("./git.ts")).git,
};

/** What these presets lead to now. */
export function resolvePresets(names: readonly string[], source: PresetSource): Promise<ResolvedPreset[]> {
  return Promise.all(
    [...new Set(names)].map(async (name) => {
      if (!isPresetName(name))
        throw new CaissonError(
          "INVALID_INPUT",
          `there is no preset ${JSON.stringify(name)}; there are ${presetNames.join(", ")}`,
        );
      return (await presets[name]())(source);
    }),
  );
}

/** The rules that presets stand for, and what their tools are told inside. */
export interface PresetOutcome {
  allow: string[];
  env: Record<string, string>;
  files: ToldFile[];
}

export async function presetRules(
  names: readonly string[],
  source: PresetSource,
  lookUp: LookUp,
): Promise<PresetOutcome> {
  const resolved = await resolvePresets(names, source);
  const hosts = resolved.flatMap((preset) => preset.hosts);
  const allow = new Set([...hosts.map(({ rule }) => rule), ...(await addressRules(hosts, lookUp))]);
  const env = Object.assign({}, ...resolved.map((preset) => preset.env));
  return { allow: [...allow], env, files: resolved.flatMap(({ files }) => files) };
}
