import type { Surroundings } from "@caisson/contract";
import type { PresetSource } from "../presets/index.ts";
import type { EngineContext } from "./context.ts";

/** Variables count as the daemon has them: a caller hands over no more than its PATH and its home directory. */
export function presetSource(
  { parts }: EngineContext,
  project: string,
  surroundings: Surroundings | undefined,
): PresetSource {
  const home = (surroundings ?? parts.surroundings)?.home ?? "";
  return { home, env: process.env, project };
}
