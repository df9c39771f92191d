import { dirname } from "node:path";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";
import { joined, nodeInstallation } from "./node-prefix.ts";

/**
 * A directory of one's own for `npm install --global`, such as `~/.npm-global`: programs in `bin`, what they lead to in
 * `lib`, and a Node that is somewhere else. `~/.local` is the other rule's: not everything in its `lib` is a program's.
 */
export const npmGlobal: ToolchainRule = {
  name: "npm-global",
  detect({ home, path }, look) {
    const entries = path.filter(
      (entry) =>
        entry.endsWith("/bin") &&
        !isShown(entry) &&
        entry !== `${home}/.local/bin` &&
        look.isDirectory(`${dirname(entry)}/lib/node_modules`),
    );
    return joined(
      entries
        .filter((entry) => !look.exists(`${entry}/node`))
        .map((entry) => {
          const prefix = dirname(entry);
          const { covers, env, path: inside } = nodeInstallation(prefix, entry, look);
          return { binds: [entry, `${prefix}/lib/node_modules`], covers, env, path: inside };
        }),
    );
  },
};
