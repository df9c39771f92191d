import { CaissonError } from "@caisson/contract";
import { addressRules } from "./addresses.ts";
import {
  isPresetName,
  type Preset,
  type PresetName,
  type PresetSource,
  presetNames,
  type ResolvedPreset,
} from "./preset.ts";

export {
  isPresetName,
  type PresetHost,
  type PresetName,
  type PresetSource,
  presetNames,
  type ResolvedPreset,
} from "./preset.ts";

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

/** The rules that presets stand for, and the variables that their tools need inside. */
export async function presetRules(
  names: readonly string[],
  source: PresetSource,
): Promise<{ allow: string[]; env: Record<string, string> }> {
  const resolved = await resolvePresets(names, source);
  const hosts = resolved.flatMap((preset) => preset.hosts);
  const allow = new Set([...hosts.map(({ rule }) => rule), ...(await addressRules(hosts))]);
  return { allow: [...allow], env: Object.assign({}, ...resolved.map(({ env }) => env)) };
}
