import type { Caller } from "../call/caller.ts";
import type { CallOptions, OnceOptions } from "../call/options.ts";
import {
  type Capabilities,
  capabilitiesFrom,
  type Finding,
  findingFrom,
  type Preset,
  type Profile,
  presetFrom,
  profileFrom,
  type UsageItem,
  usageItemFrom,
} from "../values/system.ts";

export interface Health {
  ready: boolean;
  troubles: string[];
}

export interface Config {
  /** `value` is parsed; `source` says which file or variable it comes from. */
  settings: { key: string; value: unknown; source: string }[];
  /** A project file that is there but not trusted yet, or empty. */
  untrustedProjectFile: string;
}

/** The daemon itself. */
export class System {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async health(options?: CallOptions): Promise<Health> {
    const { ready, troubles } = await this.#caller.unary(
      (c) => c.SystemService.method.getHealth,
      {},
      options,
    );
    return { ready, troubles };
  }

  async capabilities(options?: CallOptions): Promise<Capabilities> {
    return capabilitiesFrom(
      await this.#caller.unary((c) => c.SystemService.method.getCapabilities, {}, options),
    );
  }

  /** What is missing on this machine and what mends it. */
  async diagnose(options?: CallOptions): Promise<Finding[]> {
    const { findings } = await this.#caller.unary((c) => c.SystemService.method.diagnose, {}, options);
    return findings.map(findingFrom);
  }

  async profiles(options?: CallOptions): Promise<Profile[]> {
    const { profiles } = await this.#caller.unary((c) => c.SystemService.method.listProfiles, {}, options);
    return profiles.map(profileFrom);
  }

  /** What presets lead to now; with a project's directory, its own files count as well. */
  async presets({
    projectDir = "",
    names = [],
    ...options
  }: CallOptions & { projectDir?: string; names?: string[] } = {}): Promise<Preset[]> {
    const request = { projectDir, names };
    const { presets } = await this.#caller.unary((c) => c.SystemService.method.listPresets, request, options);
    return presets.map(presetFrom);
  }

  /** The configuration in force; with a project's directory, its trusted file counts as well. */
  async config({ projectDir = "", ...options }: CallOptions & { projectDir?: string } = {}): Promise<Config> {
    const answer = await this.#caller.unary((c) => c.SystemService.method.getConfig, { projectDir }, options);
    const settings = answer.settings.map(({ key, value, source }) => ({
      key,
      value: JSON.parse(value),
      source,
    }));
    return { settings, untrustedProjectFile: answer.untrustedProjectFile };
  }

  /** Trusts a project's file as it is now, or takes the trust back. */
  async trust(
    projectDir: string,
    { revoke = false, ...options }: CallOptions & { revoke?: boolean } = {},
  ): Promise<{ file: string; sha256: string }> {
    const request = { projectDir, revoke };
    const { file, sha256 } = await this.#caller.unary(
      (c) => c.SystemService.method.trustProject,
      request,
      options,
    );
    return { file, sha256 };
  }

  /** What is kept on disk. */
  async usage(options?: CallOptions): Promise<UsageItem[]> {
    const { items } = await this.#caller.unary((c) => c.SystemService.method.getUsage, {}, options);
    return items.map(usageItemFrom);
  }

  /** Frees what ended sandboxes left; with `agents` also what agents keep of their own. */
  async prune(options?: OnceOptions & { agents?: boolean }): Promise<{ sandboxes: number; bytes: number }> {
    const request = { idempotencyKey: this.#caller.key(options), agents: options?.agents ?? false };
    const { sandboxes, bytes } = await this.#caller.unary(
      (c) => c.SystemService.method.prune,
      request,
      options,
    );
    return { sandboxes, bytes: Number(bytes) };
  }
}
