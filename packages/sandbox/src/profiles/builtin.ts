import { rules } from "@caisson/contract";
import type { SandboxProfile } from "./profile.ts";

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

const noRules = { allow: [], deny: [], presets: [] };

/** The profiles that are always there. */
export const builtinProfiles: readonly SandboxProfile[] = [
  {
    name: "restrictive",
    description: "For code that nobody has read: one processor, little memory, ten minutes per command.",
    limits: {
      cpuMillis: 1000,
      memoryBytes: GiB,
      pids: 128,
      diskBytes: 512 * MiB,
      openFiles: 1024,
      outputBytes: 64 * MiB,
      timeoutMs: 600_000,
    },
    syscalls: [],
    denyRead: [],
    allowWrite: [],
    env: {},
    network: "off",
    networkRules: noRules,
    toolchains: "off",
    secrets: [],
    caches: [],
  },
  {
    name: "moderate",
    description: "For an agent at work on a project: builds and tests run, the host stays untouched.",
    limits: {
      cpuMillis: 0,
      memoryBytes: 4 * GiB,
      pids: 1024,
      diskBytes: 4 * GiB,
      openFiles: 16_384,
      outputBytes: rules.sizes.kept_output_bytes,
      timeoutMs: 0,
    },
    syscalls: [],
    denyRead: [],
    allowWrite: [],
    env: {},
    network: "off",
    networkRules: noRules,
    toolchains: "auto",
    secrets: [],
    caches: [],
  },
  {
    name: "permissive",
    description: "For heavy or unusual work: debuggers, large builds; the wall itself is the same.",
    limits: {
      cpuMillis: 0,
      memoryBytes: 16 * GiB,
      pids: 8192,
      diskBytes: 16 * GiB,
      openFiles: 65_536,
      outputBytes: 4 * rules.sizes.kept_output_bytes,
      timeoutMs: 0,
    },
    syscalls: ["debug"],
    denyRead: [],
    allowWrite: [],
    env: {},
    network: "ask",
    networkRules: noRules,
    toolchains: "auto",
    secrets: [],
    caches: [],
  },
];
