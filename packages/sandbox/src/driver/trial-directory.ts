import { rmSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";

const below = (home: string) => `${home}/trials`;

/** A directory in which a driver is tried; whoever tries it removes it. `home`: the daemon's. */
export async function makeTrialDirectory(home: string, driver: string): Promise<string> {
  await mkdir(below(home), { recursive: true, mode: 0o700 });
  return mkdtemp(`${below(home)}/${driver}-`);
}

/** What a daemon left that was killed meanwhile. */
export function removeTrialDirectories(home: string): void {
  rmSync(below(home), { recursive: true, force: true });
}
