import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract";

export interface Installation {
  version: string;
  /** Identifies this build of launcher, guest and keeper. */
  build: string;
  /** The guest binary. */
  guest: string;
}

const root = join(import.meta.dirname, "../../..");

/** Finds the parts that belong to this daemon. */
export function install(): Installation {
  const guest = process.env.CAISSON_GUEST ?? join(root, ".caisson/bin/caisson-guest");
  if (!existsSync(guest)) {
    throw new CaissonError("NOT_ENFORCEABLE", "the guest binary is missing: run ./caisson once to build it");
  }
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8"));
  return { version, build: buildId(guest), guest };
}

function buildId(guest: string): string {
  // A binary that was replaced while the daemon ran must not pass for the one it started with.
  if (!statSync(guest).isFile()) throw new CaissonError("INTERNAL", "the guest binary is not a file");
  return execFileSync(guest, ["build-id"], { encoding: "utf8", env: {} }).trim();
}
