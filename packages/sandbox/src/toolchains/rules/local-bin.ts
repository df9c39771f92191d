import { programsOfCodex } from "../guard.ts";
import type { Look } from "../look.ts";
import { isAtOrBelow } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/** Below the home directory, where programs that `~/.local/bin` only links to live, one directory for each. */
const homesOfPrograms = [
  ".local/share/pipx/venvs",
  ".local/pipx/venvs",
  ".local/share/pypoetry/venv",
  ".local/share/uv/tools",
  ".local/share/uv/python",
  ".local/lib/node_modules",
  // Where the installers of Claude Code and Codex put their versions.
  ".local/share/claude/versions",
  programsOfCodex,
];

/**
 * `~/.local/bin` and `~/bin`, where links of the first lead as long as that holds programs, and the packages of
 * `pip install --user`. Nothing else of `~/.local`: in `share` and `state` there are keyrings, histories and the data
 * of other programs.
 */
export const localBin: ToolchainRule = {
  name: "local-bin",
  detect(developer, look) {
    const local = `${developer.home}/.local`;
    const entries = [`${local}/bin`, `${developer.home}/bin`].filter(
      (entry) => developer.path.includes(entry) && look.isDirectory(entry),
    );
    if (entries.length === 0) return undefined;
    const packages = look
      .names(`${local}/lib`)
      .filter((name) => /^python[0-9.]+$/.test(name))
      .map((name) => `${local}/lib/${name}`);
    const homes = linkedHomes(developer.home, look);
    return {
      binds: [...entries, ...packages, ...homes],
      covers: homes
        .filter((home) => !home.endsWith("node_modules"))
        .flatMap((home) =>
          look.names(home).flatMap((name) => [`${home}/${name}/pip.conf`, `${home}/${name}/uv-receipt.toml`]),
        )
        .filter((file) => look.exists(file)),
      env: packages.length > 0 ? { PYTHONUSERBASE: local } : {},
      path: new Map(entries.map((entry) => [entry, [entry]])),
    };
  },
};

function linkedHomes(home: string, look: Look): string[] {
  const targets = look.targets(`${home}/.local/bin`);
  return homesOfPrograms
    .map((name) => `${home}/${name}`)
    .filter((place) => {
      const real = look.real(place);
      return real !== undefined && targets.some((target) => isAtOrBelow(target, real));
    });
}
