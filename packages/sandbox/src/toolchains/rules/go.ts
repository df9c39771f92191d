import { dirname } from "node:path";
import { inside } from "../../engine/inside.ts";
import type { ToolchainRule } from "../toolchain.ts";

/**
 * Go wherever it was unpacked, and the programs that `go install` made. GOPATH, the module cache and the build cache
 * are the sandbox's own.
 */
export const go: ToolchainRule = {
  name: "go",
  detect({ path }, look) {
    const entry = path.find((one) => look.exists(`${one}/go`));
    if (entry === undefined) return undefined;
    const root = dirname(dirname(look.real(`${entry}/go`) ?? "/"));
    const isRoot = look.isDirectory(`${root}/src/runtime`);
    const installed = path.filter((one) => one.endsWith("/go/bin") && one !== entry && look.isDirectory(one));
    const gopath = `${inside.home}/go`;
    return {
      binds: [...(isRoot ? [root] : []), ...installed],
      covers: [],
      env: { GOPATH: gopath },
      path: new Map([
        [entry, [`${gopath}/bin`, ...(isRoot ? [`${root}/bin`] : []), entry]],
        ...installed.map((one): [string, string[]] => [one, [one]]),
      ]),
    };
  },
};
