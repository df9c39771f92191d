import { dirname } from "node:path";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";
import { joined, nodeInstallation } from "./node-prefix.ts";

/** A Node that was unpacked somewhere, such as `/opt/node-v24/bin`, or that a link on the PATH leads to. */
export const node: ToolchainRule = {
  name: "node",
  detect({ path }, look) {
    const entry = path.find((one) => look.exists(`${one}/node`));
    if (entry === undefined) return undefined;
    const program = look.real(`${entry}/node`) ?? "";
    const prefix = dirname(dirname(program));
    // Elsewhere than in a `bin` it is a shim of something else's.
    if (isShown(program) || program !== `${prefix}/bin/node`) return undefined;
    return joined([nodeInstallation(prefix, entry, look)]);
  },
};
