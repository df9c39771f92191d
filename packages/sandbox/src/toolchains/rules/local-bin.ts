import type { Look } from "../look.ts";
import { isAtOrBelow } from "../paths.ts";
import type { Developer, ToolchainRule } from "../toolchain.ts";

/** Below `~/.local`, where programs that `bin` only links to live, one directory for each. */
const homesOfPrograms = [
  "share/pipx/venvs",
  "pipx/venvs",
  "share/uv/tools",
  "share/uv/python",
  "lib/node_modules",
];

/**
 * `~/.local/bin`, where its links lead as long as that holds programs, and the packages of `pip install --user`.
 * Nothing else of `~/.local`: in `share` and `state` there are keyrings, histories and the data of other programs.
 */
export const localBin: ToolchainRule = {
  name: "local-bin",
  detect(developer, look) {
    const local = `${developer.home}/.local`;
    const entry = `${local}/bin`;
    if (!developer.path.includes(entry) || !look.isDirectory(entry)) return undefined;
    const packages = look
      .names(`${local}/lib`)
      .filter((name) => /^python[0-9.]+$/.test(name))
      .map((name) => `${local}/lib/${name}`);
    const homes = linkedHomes(developer, look);
    return {
      binds: [entry, ...packages, ...homes],
      covers: homes
        .filter((home) => !home.endsWith("node_modules"))
        .flatMap((home) =>
          look.names(home).flatMap((name) => [`${home}/${name}/pip.conf`, `${home}/${name}/uv-receipt.toml`]),
        )
        .filter((file) => look.exists(file)),
      env: packages.length > 0 ? { PYTHONUSERBASE: local } : {},
      path: new Map([[entry, [entry]]]),
    };
  },
};

function linkedHomes({ home }: Developer, look: Look): string[] {
  const local = `${home}/.local`;
  const targets = look.targets(`${local}/bin`);
  const root = look.real(local) ?? local;
  return homesOfPrograms
    .filter((name) => targets.some((target) => isAtOrBelow(target, `${root}/${name}`)))
    .map((name) => `${local}/${name}`);
}
