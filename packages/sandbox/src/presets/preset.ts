import type { ToldFile } from "./told.ts";

/** Where a developer's tools look for their configuration, and where they are found. */
export interface PresetSource {
  /** The developer's home directory. */
  home: string;
  /** Variables of the developer, as far as they are known; `PATH` is where tools are looked for. */
  env: Readonly<Record<string, string | undefined>>;
  /** The project's directory, or empty. */
  project: string;
  /** Where the machine's own files lie. Default: `/`. */
  root?: string;
  /**
   * Where tools are asked: a directory of the daemon's own. Many look for configuration in every directory above the one they are
   * run in, so no other user may write there.
   */
  scratch: string;
}

/** A place that a tool fetches from. */
export interface PresetHost {
  /** As rules name it: `name:port`. */
  rule: string;
  /** The file, the variable or the question to the tool that names it. */
  from: string;
  /** Named by the project's own files, which anybody may have written. */
  project: boolean;
  /** Configured by nobody: what the tool says by itself. */
  byTool: boolean;
}

export interface ResolvedPreset {
  name: PresetName;
  hosts: PresetHost[];
  /** Variables that tell the tool inside what its configuration outside says; never with credentials. */
  env: Record<string, string>;
  /** The same for tools that read files alone. */
  files: ToldFile[];
  /** What could not be understood, as sentences. */
  notes: string[];
}

export const presetNames = ["npm", "pip", "cargo", "go", "maven", "git"] as const;
export type PresetName = (typeof presetNames)[number];

export function isPresetName(word: unknown): word is PresetName {
  return (presetNames as readonly unknown[]).includes(word);
}

/** One tool: reads its configuration as it is now. */
export type Preset = (source: PresetSource) => Promise<ResolvedPreset>;
