import { dirname } from "node:path";
import type { ToolchainRule } from "../toolchain.ts";
import { configsOf, newest, programsOf, toolVersions } from "./installs.ts";

/**
 * asdf puts shims on the PATH that run its plugins' scripts at every start. The sandbox gets the installed programs
 * themselves, in the versions of the developer's own `~/.tool-versions`, else the newest.
 */
export const asdf: ToolchainRule = {
  name: "asdf",
  detect({ home, path }, look) {
    const entry = path.find((one) => one.endsWith("/shims") && look.isDirectory(`${dirname(one)}/installs`));
    if (entry === undefined || look.isDirectory(`${dirname(entry)}/pyenv.d`) || /\/mise\//.test(entry))
      return undefined;
    const installs = `${dirname(entry)}/installs`;
    const chosen = toolVersions(look.text(`${home}/.tool-versions`));
    const programs = look.names(installs).flatMap((tool) => {
      const installed = look.names(`${installs}/${tool}`);
      const wanted = (chosen.get(tool) ?? []).filter((version) => installed.includes(version));
      const last = newest(installed);
      const versions = wanted.length > 0 ? wanted : last === undefined ? [] : [last];
      return versions.flatMap((version) => programsOf(`${installs}/${tool}/${version}`, look));
    });
    return {
      binds: [installs],
      covers: configsOf(installs, look),
      env: {},
      path: new Map([[entry, programs]]),
    };
  },
};
