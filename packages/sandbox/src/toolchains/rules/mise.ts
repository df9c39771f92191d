import { dirname } from "node:path";
import type { Look } from "../look.ts";
import type { ToolchainRule } from "../toolchain.ts";
import { configsOf, isName, newest, programsOf } from "./installs.ts";

/**
 * mise puts the installed programs on the PATH (`mise activate`), or shims that read its configuration, which may
 * hold secrets. The sandbox gets the programs themselves; for shims in the versions that the developer's own
 * configuration names, else the newest.
 */
export const mise: ToolchainRule = {
  name: "mise",
  detect({ home, path }, look) {
    const root = path.map(rootOf).find((one) => one !== undefined && look.isDirectory(`${one}/installs`));
    if (root === undefined) return undefined;
    const installs = `${root}/installs`;
    const shims = path.filter((entry) => entry === `${root}/shims`);
    const direct = path.filter((entry) => entry.startsWith(`${installs}/`) && look.isDirectory(entry));
    const programs =
      shims.length > 0 ? defaultPrograms(installs, look.text(`${home}/.config/mise/config.toml`), look) : [];
    return {
      binds: [installs],
      covers: configsOf(installs, look),
      env: {},
      path: new Map([
        ...direct.map((entry): [string, string[]] => [entry, [entry]]),
        ...shims.map((entry): [string, string[]] => [entry, programs]),
      ]),
    };
  },
};

/** Of `~/.local/share/mise/shims` and `~/.local/share/mise/installs/node/22/bin`. */
function rootOf(entry: string): string | undefined {
  if (entry.endsWith("/mise/shims")) return dirname(entry);
  return /^(.+\/mise)\/installs\/[^/]+\/[^/]+(?:\/.*)?$/.exec(entry)?.[1];
}

function defaultPrograms(installs: string, config: string, look: Look): string[] {
  const chosen = toolsOf(config);
  return look.names(installs).flatMap((tool) => {
    const installed = look.names(`${installs}/${tool}`);
    const wanted = chosen.get(tool) ?? "";
    // `22`, `22.1` and `latest` are links that mise keeps beside the versions.
    const version = installed.includes(wanted)
      ? wanted
      : newest(installed.filter((one) => /^[0-9v]/.test(one)));
    return version === undefined ? [] : programsOf(`${installs}/${tool}/${version}`, look);
  });
}

/** Names and versions of the table `[tools]`; nothing else of the file is used. */
function toolsOf(config: string): Map<string, string> {
  const tools = new Map<string, string>();
  let table = "";
  for (const line of config.split("\n")) {
    table = /^\s*\[([^\]]*)\]/.exec(line)?.[1]?.trim() ?? table;
    const [, tool, version] = /^\s*"?([^"\s=]+)"?\s*=\s*(?:\[\s*)?"([^"]+)"/.exec(line) ?? [];
    if (table === "tools" && isName(tool)) tools.set(tool!, version!);
  }
  return tools;
}
