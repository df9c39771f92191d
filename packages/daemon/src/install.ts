import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";

export interface Installation {
  version: string;
  /** Identifies this build of launcher, guest and keeper. */
  build: string;
  /** The guest binary that this daemon uses: its own copy. */
  guest: string;
  /** What the daemon was made from; when it changes, the daemon is old. */
  sources: string[];
}

const root = join(import.meta.dirname, "../../..");

/** Fails where no daemon could be started. */
export function checkInstallation(): void {
  buildOf(installedGuest());
}

/** Finds the parts that belong to this daemon, which keeps its data in `home`. */
export function install(home: string): Installation {
  const installed = installedGuest();
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8"));
  const sources = [join(import.meta.dirname, "../.."), installed];
  return {
    version,
    sources,
    ...(ownCopy(installed, join(home, "guest")) ?? { guest: installed, build: buildOf(installed) }),
  };
}

function installedGuest(): string {
  const installed = process.env.CAISSON_GUEST ?? join(root, ".caisson/bin/caisson-guest");
  if (existsSync(installed)) return installed;
  throw new CaissonError("NOT_ENFORCEABLE", "the guest binary is missing: run ./caisson once to build it");
}

/**
 * A binary that is replaced while the daemon runs must not become the guest of its next sandboxes, so it
 * keeps a copy. Undefined where that cannot be run, as on a file system without programs.
 */
function ownCopy(installed: string, dir: string): { guest: string; build: string } | undefined {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const fresh = join(dir, "new");
    rmSync(fresh, { force: true });
    copyFileSync(installed, fresh);
    chmodSync(fresh, 0o755);
    const build = buildOf(fresh);
    renameSync(fresh, join(dir, build));
    // Sandboxes of earlier builds hold theirs open.
    for (const name of readdirSync(dir)) if (name !== build) rmSync(join(dir, name), { force: true });
    return { guest: join(dir, build), build };
  } catch {
    return undefined;
  }
}

function buildOf(guest: string): string {
  return execFileSync(guest, ["build-id"], { encoding: "utf8", env: {} }).trim();
}
