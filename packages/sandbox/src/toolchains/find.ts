import { inside } from "../engine/inside.ts";
import { mountPoints } from "./file-systems.ts";
import { mayBeShown } from "./guard.ts";
import { Look } from "./look.ts";
import { isAtOrBelow, isShown } from "./paths.ts";
import { rules } from "./rules/index.ts";
import type { Developer, Toolchain } from "./toolchain.ts";

/** Everything that a sandbox gets of a developer's toolchains. */
export interface ToolchainSet {
  /** Which rules found something, in the order of the rules. */
  names: string[];
  binds: string[];
  covers: string[];
  /** PATH among them. */
  env: Record<string, string>;
}

/** A developer whose PATH is longer has most of it for nothing. */
const maxPathEntries = 128;
/** Each costs time at every start. What comes first on the PATH comes first. */
const maxBinds = 24;

/** What the developer's PATH really uses. `data` is the daemon's own directory, which is never shown. */
export function findToolchains(developer: Developer, data: string, look = new Look()): ToolchainSet {
  const plain = { ...developer, path: developer.path.slice(0, maxPathEntries) };
  const found = rules.flatMap((rule) => {
    const toolchain = rule.detect(plain, look);
    return toolchain ? [{ name: rule.name, ...toolchain }] : [];
  });
  const points = mountPoints();
  const binds = chooseBinds(found, (path) => {
    const real = look.real(path);
    if (real === undefined || !mayBeShown(path, plain, data) || !mayBeShown(real, plain, data)) return false;
    // The kernel hands in one file system at a time.
    return !points.some((point) => point !== real && isAtOrBelow(point, real));
  });
  const isThere = (path: string) => isShown(path) || binds.some((bind) => isAtOrBelow(path, bind));
  const used = found.filter((toolchain) => toolchain.binds.some(isThere));
  return {
    names: used.map(({ name }) => name),
    binds,
    covers: [...new Set(used.flatMap(({ covers }) => covers))].filter(isThere),
    env: {
      ...Object.assign({}, ...used.map(({ env }) => env)),
      PATH: pathInside(plain.path, used, isThere),
    },
  };
}

/** Without what every sandbox shows, and without what lies in another one. */
function chooseBinds(found: readonly Toolchain[], mayBe: (path: string) => boolean): string[] {
  const asked = [...new Set(found.flatMap(({ binds }) => binds))].filter(
    (path) => !isShown(path) && mayBe(path),
  );
  return asked
    .filter((path) => !asked.some((other) => other !== path && isAtOrBelow(path, other)))
    .slice(0, maxBinds);
}

/** The developer's order, as far as it leads somewhere inside; then what every sandbox has. */
function pathInside(
  path: readonly string[],
  used: readonly Toolchain[],
  isThere: (path: string) => boolean,
): string {
  const entries = [`${inside.home}/.local/bin`];
  for (const entry of path) {
    const meant = used.flatMap((toolchain) => toolchain.path.get(entry) ?? []);
    const isPrivate = (one: string) => isAtOrBelow(one, inside.home);
    entries.push(...(meant.length > 0 ? meant : [entry]).filter((one) => isThere(one) || isPrivate(one)));
  }
  entries.push(...inside.path.split(":"));
  return [...new Set(entries)].filter((entry) => !entry.includes(":")).join(":");
}
