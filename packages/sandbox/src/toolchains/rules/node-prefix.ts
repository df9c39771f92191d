import { inside } from "../../engine/inside.ts";
import type { Look } from "../look.ts";
import type { Toolchain } from "../toolchain.ts";

/**
 * An installation of Node in a directory of its own, used by one entry of the PATH. Of the directory only
 * programs, libraries and headers: `etc/npmrc` beside them holds tokens.
 */
export function nodeInstallation(prefix: string, entry: string, look: Look): Toolchain {
  const parts = ["bin", "lib", "include"].map((name) => `${prefix}/${name}`);
  const builtin = `${prefix}/lib/node_modules/npm/npmrc`;
  return {
    binds: parts.filter((part) => look.isDirectory(part)),
    covers: look.exists(builtin) ? [builtin] : [],
    env: nodeEnv,
    path: new Map([[entry, [`${prefix}/bin`, entry]]]),
  };
}

/** `npm install --global` writes where it may, and where the PATH begins. */
export const nodeEnv = { npm_config_prefix: `${inside.home}/.local` };

/** One after the other; later variables win. */
export function joined(toolchains: readonly Toolchain[]): Toolchain | undefined {
  if (toolchains.length === 0) return undefined;
  return {
    binds: toolchains.flatMap(({ binds }) => binds),
    covers: toolchains.flatMap(({ covers }) => covers),
    env: Object.assign({}, ...toolchains.map(({ env }) => env)),
    path: new Map(toolchains.flatMap(({ path }) => [...path])),
  };
}
