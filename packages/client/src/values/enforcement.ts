import type { Enforcement as EnforcementMessage, Limits as LimitsMessage } from "@caisson/contract";
import { enumName, toNumber } from "./numbers.ts";

/** Bounds on what a sandbox may use. What is left out is as the profile says. */
export interface Limits {
  /** Processors, such as 1.5. */
  cpus?: number | undefined;
  /** Bytes. */
  memory?: number | undefined;
  /** Processes and threads. */
  pids?: number | undefined;
  /** Bytes in each private writable mount, and written to the project. */
  disk?: number | undefined;
  /** Open files per process. */
  openFiles?: number | undefined;
  /** Bytes of kept output per process. */
  output?: number | undefined;
  /** Wall time per command, in milliseconds. */
  timeout?: number | undefined;
}

const states = ["unspecified", "enforced", "not enforced", "off"] as const;

export interface Mechanism {
  readonly name: string;
  readonly state: (typeof states)[number];
  readonly by: string;
  readonly detail: string;
}

/** What was really enforced, mechanism by mechanism. */
export interface Enforcement {
  readonly tier: string;
  readonly driver: string;
  readonly profile: string;
  readonly mechanisms: readonly Mechanism[];
  readonly limits: Readonly<Limits>;
}

/** Messages may be shared between the exits of a sandbox; so is what is made of them, and nobody can change it. */
const made = new WeakMap<EnforcementMessage, Enforcement>();

export function enforcementFrom(message: EnforcementMessage | undefined): Enforcement | undefined {
  if (!message) return undefined;
  const known = made.get(message);
  if (known) return known;
  const { tier, driver, profile } = message;
  const mechanisms = message.mechanisms.map(({ name, state, by, detail }) =>
    Object.freeze({ name, state: enumName(states, state), by, detail }),
  );
  const limits = Object.freeze(limitsFrom(message.limits));
  const enforcement = Object.freeze({ tier, driver, profile, mechanisms: Object.freeze(mechanisms), limits });
  made.set(message, enforcement);
  return enforcement;
}

export function limitsFrom(message: LimitsMessage | undefined): Limits {
  if (!message) return {};
  const limits: Limits = {};
  if (message.cpuMillis) limits.cpus = message.cpuMillis / 1000;
  if (message.memoryBytes) limits.memory = toNumber(message.memoryBytes);
  if (message.pids) limits.pids = message.pids;
  if (message.diskBytes) limits.disk = toNumber(message.diskBytes);
  if (message.openFiles) limits.openFiles = message.openFiles;
  if (message.outputBytes) limits.output = toNumber(message.outputBytes);
  if (message.timeoutMs) limits.timeout = message.timeoutMs;
  return limits;
}

export function limitsInit(limits: Limits | undefined) {
  return {
    cpuMillis: Math.round((limits?.cpus ?? 0) * 1000),
    memoryBytes: BigInt(limits?.memory ?? 0),
    pids: limits?.pids ?? 0,
    diskBytes: BigInt(limits?.disk ?? 0),
    openFiles: limits?.openFiles ?? 0,
    outputBytes: BigInt(limits?.output ?? 0),
    timeoutMs: limits?.timeout ?? 0,
  };
}
