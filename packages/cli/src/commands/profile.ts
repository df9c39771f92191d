import type { Limits } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { closest } from "../command/suggest.ts";
import { UsageError } from "../command/usage-error.ts";
import { formatDuration, formatSize } from "../text/units.ts";
import { printPresets } from "../work/presets.ts";

const list = defineCommand({
  name: "ls",
  summary: "List profiles",
  async run({ options, client, print }) {
    const profiles = await client.system.profiles();
    if (options.json) await print.json(profiles);
    else
      await print.table(
        ["PROFILE", "WHAT FOR"],
        profiles.map(({ name, description }) => [name, description]),
      );
    return 0;
  },
});

const show = defineCommand({
  name: "show",
  summary: "Explain each option of a profile",
  positionals: [{ name: "NAME", summary: "The profile's name" }],
  async run({ options, positionals: [name], io, client, print }) {
    const profiles = await client.system.profiles();
    const profile = profiles.find((candidate) => candidate.name === name);
    if (!profile) {
      const meant = closest(
        name!,
        profiles.map((candidate) => candidate.name),
      );
      throw new UsageError(`there is no profile ${name}${meant ? `; did you mean ${meant}?` : ""}`);
    }
    if (options.json) {
      await print.json(profile);
      return 0;
    }
    await print.line(`${print.paint("bold", profile.name)}: ${profile.description}`);
    const values: [string, string][] = [
      ["network", profile.network],
      ["toolchains", profile.toolchains],
      ["syscalls", profile.syscalls.join(", ") || "the base list"],
      ["deny_read", profile.denyRead.join(", ") || "nothing"],
      ["allow_write", profile.allowWrite.join(", ") || "everything that is writable"],
      [
        "env",
        Object.entries(profile.env)
          .map(([key, value]) => `${key}=${value}`)
          .join(" ") || "nothing",
      ],
      ["secrets", profile.secrets.join(", ") || "none"],
      ["caches", profile.caches.join(", ") || "none"],
      ...limitRows(profile.limits),
    ];
    const rows = values.map(([key, value]) => [`  ${key}`, value, profile.explained[key] ?? ""]);
    await print.table(["  OPTION", "VALUE", "WHAT IT DOES"], rows);
    await print.line();
    await printPresets(print, await client.system.presets({ projectDir: io.cwd }));
    return 0;
  },
});

function limitRows(limits: Limits): [string, string][] {
  const rows: [string, string | undefined][] = [
    ["limits.cpu_millis", limits.cpus?.toString()],
    ["limits.memory_bytes", limits.memory === undefined ? undefined : formatSize(limits.memory)],
    ["limits.pids", limits.pids?.toString()],
    ["limits.disk_bytes", limits.disk === undefined ? undefined : formatSize(limits.disk)],
    ["limits.open_files", limits.openFiles?.toString()],
    ["limits.output_bytes", limits.output === undefined ? undefined : formatSize(limits.output)],
    ["limits.timeout_ms", limits.timeout === undefined ? undefined : formatDuration(limits.timeout)],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined);
}

export const command = defineCommand({
  name: "profile",
  summary: "List and explain profiles",
  commands: [list, show],
  examples: [{ line: "caisson profile show moderate", what: "What the default profile does" }],
});
