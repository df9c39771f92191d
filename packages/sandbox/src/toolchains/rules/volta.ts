import { dirname } from "node:path";
import type { Look } from "../look.ts";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";
import { nodeEnv } from "./node-prefix.ts";

/**
 * Volta puts shims on the PATH that choose a version at every start and want to write beside it. The sandbox
 * gets the programs themselves, in the developer's default versions.
 */
export const volta: ToolchainRule = {
  name: "volta",
  detect({ path }, look) {
    const entry = path.find(
      (one) => one.endsWith("/bin") && !isShown(one) && look.isDirectory(`${dirname(one)}/tools/image`),
    );
    if (entry === undefined) return undefined;
    const image = `${dirname(entry)}/tools/image`;
    const bins = defaultPrograms(`${dirname(entry)}/tools/user`, image, look);
    if (bins.length === 0) return undefined;
    const covers = look
      .names(`${image}/node`)
      .flatMap((version) => [
        `${image}/node/${version}/etc/npmrc`,
        `${image}/node/${version}/lib/node_modules/npm/npmrc`,
      ])
      .filter((file) => look.exists(file));
    return { binds: [image], covers, env: nodeEnv, path: new Map([[entry, bins]]) };
  },
};

/** Those of `platform.json`, and of packages that were installed by `volta install`. */
function defaultPrograms(user: string, image: string, look: Look): string[] {
  const platform = parsed(look.text(`${user}/platform.json`));
  const node = asRecord(platform.node);
  const wanted = [
    ["yarn", platform.yarn],
    ["pnpm", platform.pnpm],
    ["npm", node.npm],
    ["node", node.runtime],
  ].map(([tool, version]) => `${image}/${tool}/${version}/bin`);
  const packages = look.names(`${image}/packages`).map((name) => `${image}/packages/${name}/bin`);
  return [...packages, ...wanted].filter((bin) => look.isDirectory(bin));
}

function parsed(json: string): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(json));
  } catch {
    return {};
  }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
