import type { LimitValues } from "../limits/index.ts";
import type { SandboxProfile } from "./profile.ts";

/** One line per option: what it does, and what this profile sets it to. */
export function explainProfile(profile: SandboxProfile): Record<string, string> {
  const { limits } = profile;
  const bound = (value: number, unit: (value: number) => string) => (value === 0 ? "no bound" : unit(value));
  const lines: Record<keyof LimitValues, string> = {
    cpuMillis: `Processors that all commands together may use: ${bound(limits.cpuMillis, (n) => `${n / 1000}`)}.`,
    memoryBytes: `Memory of all processes together; beyond it the largest is ended: ${bound(limits.memoryBytes, size)}.`,
    pids: `Processes and threads at once: ${bound(limits.pids, String)}.`,
    diskBytes: `Bytes in each of /tmp, the home directory and /dev/shm: ${bound(limits.diskBytes, size)}.`,
    openFiles: `Open files per process: ${bound(limits.openFiles, String)}.`,
    outputBytes: `Output kept per command; beyond it the oldest goes: ${bound(limits.outputBytes, size)}.`,
    timeoutMs: `Wall time per command, then SIGTERM and SIGKILL: ${bound(limits.timeoutMs, (n) => `${n / 1000} s`)}.`,
  };
  return {
    "limits.cpu_millis": lines.cpuMillis,
    "limits.memory_bytes": lines.memoryBytes,
    "limits.pids": lines.pids,
    "limits.disk_bytes": lines.diskBytes,
    "limits.open_files": lines.openFiles,
    "limits.output_bytes": lines.outputBytes,
    "limits.timeout_ms": lines.timeoutMs,
    syscalls: `System calls beyond the base list (\`debug\`: ptrace, \`nested\`: user namespaces): ${names(profile.syscalls)}.`,
    deny_read: `Paths inside that commands may not read: ${names(profile.denyRead)}.`,
    allow_write: `The only paths inside that commands may write: ${
      profile.allowWrite.length === 0 ? "everything that is writable" : names(profile.allowWrite)
    }.`,
    env: `Variables that every command gets: ${names(Object.keys(profile.env))}.`,
    toolchains: `Toolchains of the host that your PATH uses, read-only and without credentials: ${
      profile.toolchains === "auto" ? "shown" : "not shown"
    }.`,
    secrets: `Secrets that every sandbox gets, as placeholders: ${names(profile.secrets)}.`,
    caches: `What is kept for each project from one sandbox to the next: ${names(profile.caches)}.`,
    network: `Connections to the outside: ${network(profile)}.`,
  };
}

function network({ network: mode, networkRules: { allow, deny, presets } }: SandboxProfile): string {
  const what = {
    off: "none",
    allow: "what rules allow",
    ask: "what rules allow, a person is asked for the rest",
    on: "everything public",
  }[mode];
  const lists = Object.entries({ allowed: allow, denied: deny, presets }).filter(
    ([, list]) => list.length > 0,
  );
  return [what, ...lists.map(([name, list]) => `${name}: ${list.join(", ")}`)].join("; ");
}

function names(list: readonly string[]): string {
  return list.length === 0 ? "none" : list.join(", ");
}

function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}
