import assert from "node:assert/strict";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { findToolchains, type ToolchainSet } from "../find.ts";
import { canary, type TestHome } from "./home.ts";

/** What a sandbox gets for a PATH, given below the home directory; no secret file may be seen in it. */
export function shown(home: TestHome, ...path: string[]): ToolchainSet {
  const entries = path.map((entry) => (entry.startsWith("/") ? entry : home.path(entry)));
  const set = findToolchains({ home: home.dir, path: [...entries, "/usr/bin", "/bin"] }, "/nonexistent/data");
  const covered = new Set(set.covers.map((path) => realpathSync(path)));
  for (const bind of set.binds) {
    for (const file of filesBelow(bind)) {
      if (readFileSync(file, "utf8").includes(canary))
        assert.ok(covered.has(realpathSync(file)), `${file} is shown`);
    }
  }
  return set;
}

/** The PATH inside, up to where the system's begins. */
export function pathOf(set: ToolchainSet): string[] {
  const entries = set.env.PATH!.split(":");
  return entries.slice(0, entries.indexOf("/usr/bin"));
}

function filesBelow(path: string): string[] {
  const real = realpathSync(path);
  try {
    const entries = readdirSync(real, { withFileTypes: true, recursive: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return [real];
  }
}
