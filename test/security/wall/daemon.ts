// The wall as people meet it: `caisson run`, through daemon, keeper and guest.
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { guestPath } from "../../../packages/sandbox/src/driver/bubblewrap/argv.ts";
import { type Account, startDaemon, temporaryDirectory } from "../../support/daemon.ts";
import { collect } from "./collect.ts";
import { denied } from "./fixture.ts";
import type { Wall } from "./wall.ts";

export function daemonWall(account: Account): Wall {
  return {
    name: `caisson run as ${account.name}`,
    has: ["deny_read", "guest_path"],
    async open({ fixture, syscalls }) {
      const home = temporaryDirectory(account);
      const profile = {
        extends: "moderate",
        syscalls,
        deny_read: denied.map((name) => join(fixture.workspace, name)),
        limits: { pids: 256, open_files: 1024, disk_bytes: 64 << 20 },
      };
      // What toolchains open is tried in test/security/toolchains.test.ts.
      const settings = { sandbox: { toolchains: "off" }, profiles: { probe: profile } };
      // JSON is YAML.
      writeFileSync(join(home, "config.yaml"), JSON.stringify(settings));
      chownSync(join(home, "config.yaml"), account.uid, account.gid);
      const daemon = await startDaemon({ account, home });
      return {
        run: (probe) =>
          collect(
            join(account.root, ".caisson/bin/caisson"),
            [
              ...["run", "--profile", "probe", "--workspace", fixture.workspace],
              ...["--env", `CANARY=${fixture.canary}`, "--env", `ABSTRACT=${fixture.abstractSocket}`],
              ...["--env", `GUEST=${guestPath}`, "--", `programs/${probe}`],
            ],
            { account, env: daemon.env },
          ),
        async [Symbol.asyncDispose]() {
          await daemon[Symbol.asyncDispose]();
          rmSync(home, { recursive: true, force: true });
        },
      };
    },
  };
}
