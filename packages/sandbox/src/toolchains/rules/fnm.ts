import type { ToolchainRule } from "../toolchain.ts";
import { joined, nodeInstallation } from "./node-prefix.ts";

/**
 * fnm puts a link of each shell's own on the PATH, such as `/run/user/1000/fnm_multishells/7_8/bin`, which leads
 * to `~/.local/share/fnm/node-versions/v22.1.0/installation/bin`. The sandbox gets where it leads now.
 */
export const fnm: ToolchainRule = {
  name: "fnm",
  detect({ path }, look) {
    return joined(
      path.flatMap((entry) => {
        if (!/fnm/.test(entry) || !look.exists(`${entry}/node`)) return [];
        const [, prefix] =
          /^(.+\/node-versions\/v[^/]+\/installation)\/bin$/.exec(look.real(entry) ?? "") ?? [];
        return prefix ? [nodeInstallation(prefix, entry, look)] : [];
      }),
    );
  },
};
