import type { NetworkMode } from "../egress/index.ts";
import type { LimitValues } from "../limits/index.ts";

/** A named set of defaults for a sandbox. */
export interface SandboxProfile {
  name: string;
  description: string;
  limits: LimitValues;
  /** Syscall groups beyond the base list. */
  syscalls: readonly SyscallGroup[];
  /** Paths of the sandbox that commands may not read. */
  denyRead: readonly string[];
  /** The only paths that commands may write; empty: everything that is writable in the sandbox. */
  allowWrite: readonly string[];
  env: Readonly<Record<string, string>>;
  /** What a sandbox that asks for nothing may reach, and what is added to its rules in any case. */
  network: NetworkMode;
  networkRules: NetworkRules;
  /** Does the caller's PATH bring its toolchains in? */
  toolchains: ToolchainMode;
  /** Secrets that its sandboxes get, and what is kept for their projects, beside what they ask for. */
  secrets: readonly string[];
  caches: readonly string[];
}

export interface NetworkRules {
  allow: readonly string[];
  deny: readonly string[];
  presets: readonly string[];
}

export const toolchainModes = ["auto", "off"] as const;
export type ToolchainMode = (typeof toolchainModes)[number];

export function isToolchainMode(word: unknown): word is ToolchainMode {
  return (toolchainModes as readonly unknown[]).includes(word);
}

export const syscallGroups = ["debug", "nested"] as const;
export type SyscallGroup = (typeof syscallGroups)[number];

export function isSyscallGroup(name: string): name is SyscallGroup {
  return (syscallGroups as readonly string[]).includes(name);
}

export const defaultProfileName = "moderate";
