// Podman's service, as any account.
import { join } from "node:path";
import type { Account } from "./daemon.ts";
import { canHaveOwn, type OwnEngine, startOwn } from "./own-engine.ts";

export function canStartPodman(account: Account): boolean {
  return canHaveOwn(account, ["podman"]);
}

export function startPodman(account: Account): Promise<OwnEngine> {
  return startOwn(account, "podman", (dir, socket) => [
    "podman",
    "--root",
    join(dir, "data"),
    // Its path may have fifty characters.
    "--runroot",
    join(dir, "run"),
    "--tmpdir",
    join(dir, "run/libpod"),
    "system",
    "service",
    "--time=0",
    `unix://${socket}`,
  ]);
}
