import type { ToolchainRule } from "../toolchain.ts";
import { joined, nodeInstallation } from "./node-prefix.ts";

/** nvm puts the version in use on the PATH: `~/.nvm/versions/node/v22.1.0/bin`. */
export const nvm: ToolchainRule = {
  name: "nvm",
  detect({ path }, look) {
    return joined(
      path.flatMap((entry) => {
        const [, prefix] = /^(.+\/versions\/(?:node|io\.js)\/v[^/]+)\/bin$/.exec(entry) ?? [];
        return prefix && look.exists(`${entry}/node`) ? [nodeInstallation(prefix, entry, look)] : [];
      }),
    );
  },
};
