import { dirname } from "node:path";
import type { Look } from "../look.ts";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/** What of a prefix may name channels and indexes with tokens in them. Packages in `pkgs` are linked from elsewhere. */
const configs = [
  ".condarc",
  "condarc",
  "condarc.d",
  "etc/conda/condarc",
  "pip.conf",
  "etc/pip.conf",
  "etc/npmrc",
  "pkgs",
];

/**
 * The conda environments on the PATH (Miniconda, Miniforge, Anaconda, Mamba). Packages spread over a whole prefix, so
 * that the prefix is what is shown, and the configuration in it is covered.
 */
export const conda: ToolchainRule = {
  name: "conda",
  detect({ path }, look) {
    const used = path.filter((entry) => !isShown(entry) && isPrefix(dirname(entry), look));
    const prefixes = [...new Set(used.map(dirname))];
    const [active] = prefixes;
    if (active === undefined) return undefined;
    const inside = prefixes.flatMap((prefix) =>
      look.names(`${prefix}/envs`).map((name) => `${prefix}/envs/${name}`),
    );
    return {
      binds: prefixes,
      covers: [...prefixes, ...inside]
        .flatMap((prefix) => configs.map((name) => `${prefix}/${name}`))
        .filter((file) => look.exists(file)),
      env: { CONDA_PREFIX: active },
      path: new Map(used.map((entry) => [entry, [entry]])),
    };
  },
};

function isPrefix(prefix: string, look: Look): boolean {
  return look.isDirectory(`${prefix}/conda-meta`);
}
