import { dirname } from "node:path";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/**
 * Pythons by pyenv, with the shims that find the version that a project's `.python-version` names. The whole
 * directory is programs; only a version's own `pip.conf` may name an index with a password.
 */
export const pyenv: ToolchainRule = {
  name: "pyenv",
  detect({ path }, look) {
    const used = path.filter((entry) => !isShown(entry) && look.isFile(`${rootOf(entry)}/libexec/pyenv`));
    const [first] = used;
    if (first === undefined) return undefined;
    const root = rootOf(first);
    const versions = look.names(`${root}/versions`).map((name) => `${root}/versions/${name}`);
    const environments = versions
      .filter((version) => look.exists(`${version}/envs`))
      .flatMap((version) => look.names(`${version}/envs`).map((name) => `${version}/envs/${name}`));
    return {
      binds: [root],
      covers: [...versions, ...environments]
        .map((one) => `${one}/pip.conf`)
        .filter((file) => look.exists(file)),
      env: { PYENV_ROOT: root },
      path: new Map(used.map((entry) => [entry, [entry]])),
    };
  },
};

/** Of `~/.pyenv/bin`, `~/.pyenv/shims` and `~/.pyenv/versions/3.12.1/bin`. */
function rootOf(entry: string): string {
  return /^(.+)\/versions\/[^/]+\/bin$/.exec(entry)?.[1] ?? dirname(entry);
}
