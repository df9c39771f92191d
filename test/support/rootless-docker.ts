// Docker's engine in its rootless mode, as an ordinary user.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Account } from "./daemon.ts";
import { canHaveOwn, type OwnEngine, startOwn } from "./own-engine.ts";

/** Docker's own script; Debian puts it beside its documentation. */
const script = "/usr/share/docker.io/contrib/dockerd-rootless.sh";

export function canStartRootlessDocker(account: Account): boolean {
  return existsSync(script) && canHaveOwn(account, ["dockerd", "rootlesskit", "slirp4netns"]);
}

export function startRootlessDocker(account: Account): Promise<OwnEngine> {
  return startOwn(account, "rootless-docker", (dir, socket) => [
    "sh",
    script,
    "--iptables=false",
    "--bridge=none",
    "--data-root",
    join(dir, "data"),
    "--exec-root",
    join(dir, "exec"),
    "--pidfile",
    join(dir, "pid"),
    "-H",
    `unix://${socket}`,
  ]);
}
