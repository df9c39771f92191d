import type { Surroundings } from "@caisson/contract";
import type { PresetSource } from "../presets/index.ts";
import type { EngineContext } from "./context.ts";

/** Variables count as the daemon has them, but for those that a caller hands over: its PATH and its home directory. */
export function presetSource(
  { parts, home: scratch }: EngineContext,
  project: string,
  surroundings: Surroundings | undefined,
): PresetSource {
  const { home = "", path } = surroundings ?? parts.surroundings ?? {};
  return { home, env: path ? { ...process.env, PATH: path } : process.env, project, scratch };
}
