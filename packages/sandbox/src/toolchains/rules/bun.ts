import { dirname } from "node:path";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/** Bun, and what `bun add --global` has installed beside it. Not its cache, which holds what projects downloaded. */
export const bun: ToolchainRule = {
  name: "bun",
  detect({ path }, look) {
    const entry = path.find((one) => !isShown(one) && one.endsWith("/.bun/bin") && look.isDirectory(one));
    if (entry === undefined) return undefined;
    const packages = `${dirname(entry)}/install/global/node_modules`;
    return {
      binds: [entry, ...(look.isDirectory(packages) ? [packages] : [])],
      covers: [],
      env: {},
      path: new Map([[entry, [entry]]]),
    };
  },
};
