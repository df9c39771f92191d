import { realpathSync } from "node:fs";
import { type Manifest, parentsOf } from "./manifest.ts";

/**
 * What may not be read of a project that is sent in, by names in it. Elsewhere it is covered; here it stays outside, and
 * whatever a sandbox does to its name or to the directories above it does not reach it.
 */
export function withheldNames(projectDir: string, denied: readonly string[]): string[] {
  return denied.flatMap((path) => {
    try {
      const real = realpathSync(path);
      return real.startsWith(`${projectDir}/`) ? [real.slice(projectDir.length + 1)] : [];
    } catch {
      // Nothing is there.
      return [];
    }
  });
}

/** What is inside as far as it may count: nothing at the withheld names, and the directories above them still there. */
export function withoutWithheld(now: Manifest, before: Manifest, names: readonly string[]): Manifest {
  if (names.length === 0) return now;
  const withheld = names.map((name) => Buffer.from(name).toString("latin1"));
  const counted = new Map(now);
  const drop = (name: string) => {
    for (const other of counted.keys())
      if (other === name || other.startsWith(`${name}/`)) counted.delete(other);
  };
  for (const name of withheld) {
    drop(name);
    // The outermost first: below something else than a directory there is nothing.
    for (const parent of parentsOf(name).reverse()) {
      if (counted.get(parent)?.startsWith("d")) continue;
      drop(parent);
      const kept = before.get(parent);
      if (kept !== undefined) counted.set(parent, kept);
    }
  }
  return counted;
}
