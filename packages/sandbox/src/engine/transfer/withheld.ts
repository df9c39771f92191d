import { realpathSync } from "node:fs";
import type { Manifest } from "./manifest.ts";

/**
 * What may not be read of a project that is sent in, by names in it. Elsewhere it is covered; here it stays outside, and
 * what a sandbox puts in its place is never fetched.
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

/** A manifest without some names and what is in them. Its names are bytes in Latin-1. */
export function withoutNames(manifest: Manifest, names: readonly string[]): Manifest {
  if (names.length === 0) return manifest;
  const bytes = names.map((name) => Buffer.from(name).toString("latin1"));
  return new Map(
    [...manifest].filter(([name]) => !bytes.some((left) => name === left || name.startsWith(`${left}/`))),
  );
}
