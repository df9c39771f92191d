import { lstatSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";
import { isLocalDirectory } from "@caisson/sandbox";
import { projectFileName } from "../paths.ts";
import { type ConfigFile, flatten, nearest, readConfigFile } from "./files.ts";
import { type Policy, readPolicy } from "./policy.ts";
import { checkValue, isSettingKey, parseText, type SettingKey, settings, variableOf } from "./settings.ts";

/** A value and where it comes from. */
export interface Sourced {
  key: SettingKey;
  value: unknown;
  source: string;
}

/** Has this content of a project file been trusted by the user? */
export type TrustCheck = (file: ConfigFile) => boolean;

interface Sources {
  userFile: string;
  policyFile: string;
  env: Record<string, string | undefined>;
}

/** The configuration in force: defaults, the user's file, the environment, and per project its trusted file. */
export class Config {
  readonly policy: Policy | undefined;
  readonly #values: Map<SettingKey, Sourced>;

  private constructor(policy: Policy | undefined, values: Map<SettingKey, Sourced>) {
    this.policy = policy;
    this.#values = values;
  }

  static async load(sources: Sources): Promise<Config> {
    const [policy, userFile] = await Promise.all([
      readPolicy(sources.policyFile),
      readConfigFile(sources.userFile),
    ]);
    const values = new Map<SettingKey, Sourced>();
    for (const key of Object.keys(settings).filter(isSettingKey)) {
      values.set(key, { key, value: settings[key].default, source: "default" });
    }
    if (userFile) merge(values, flatten(userFile), `user file ${userFile.path}`);
    checkVariables(sources.env);
    for (const key of values.keys()) {
      const text = sources.env[variableOf(key)];
      if (text === undefined) continue;
      const source = `environment ${variableOf(key)}`;
      values.set(key, { key, value: checkValue(key, parseText(key, text), source), source });
    }
    if (policy?.tcp === false) {
      values.set("listen.tcp", { key: "listen.tcp", value: "off", source: `machine policy ${policy.path}` });
    }
    return new Config(policy, values);
  }

  text(key: SettingKey): string {
    return this.#values.get(key)!.value as string;
  }

  number(key: SettingKey): number {
    return this.#values.get(key)!.value as number;
  }

  flag(key: SettingKey): boolean {
    return this.#values.get(key)!.value as boolean;
  }

  list(key: SettingKey): string[] {
    return this.#values.get(key)!.value as string[];
  }

  table(key: SettingKey): Record<string, unknown> {
    return this.#values.get(key)!.value as Record<string, unknown>;
  }

  isDefault(key: SettingKey): boolean {
    return this.#values.get(key)!.source === "default";
  }

  /** Every setting as it holds for a project; `untrusted` names a file that is there and does not count. */
  async forProject(
    dir: string,
    trusted: TrustCheck,
  ): Promise<{ values: Map<SettingKey, Sourced>; untrusted: string }> {
    const values = new Map(this.#values);
    if (dir === "") return { values, untrusted: "" };
    const path = join(dir, projectFileName);
    // Most projects have none, and every command asks.
    if (isLocalDirectory(dir) && !lstatSync(path, { throwIfNoEntry: false }))
      return { values, untrusted: "" };
    const file = await readConfigFile(path);
    if (file === undefined) return { values, untrusted: "" };
    if (!trusted(file)) return { values, untrusted: file.path };
    merge(values, projectSettings(file), `project file ${file.path}`);
    return { values, untrusted: "" };
  }
}

/** Variables that are read elsewhere. */
const otherVariables = [
  "HOME",
  "CONFIG",
  "GUEST",
  "ROOT",
  "NODE",
  "DAEMON_COMMAND",
  "URL",
  "KEY",
  "SESSION",
  "SANDBOX",
];

/** A variable that is nearly one of ours was meant to be it; one that is nowhere near may be anybody's. */
function checkVariables(env: Sources["env"]): void {
  const known = [
    ...Object.keys(settings).filter(isSettingKey).map(variableOf),
    ...otherVariables.map((name) => `CAISSON_${name}`),
  ];
  for (const name of Object.keys(env)) {
    if (!name.startsWith("CAISSON_") || known.includes(name)) continue;
    const near = nearest(name, known);
    if (near)
      throw new CaissonError(
        "CONFIG_INVALID",
        `environment: there is no variable ${name}; did you mean ${near}?`,
      );
  }
}

/** What a project's file may set; anything else in it is an error that names the key. */
function projectSettings(file: ConfigFile): Map<SettingKey, unknown> {
  const found = flatten(file);
  for (const key of found.keys()) {
    if (!("project" in settings[key])) {
      throw new CaissonError("CONFIG_INVALID", `${file.path}: a project cannot set ${key}`);
    }
  }
  return found;
}

function merge(values: Map<SettingKey, Sourced>, found: Map<SettingKey, unknown>, source: string): void {
  for (const [key, value] of found) values.set(key, { key, value: checkValue(key, value, source), source });
}
