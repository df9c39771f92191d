// The driver `docker` over engines of an account's own: Podman, as root and as an ordinary user, and Docker in its rootless mode. The whole
// suite runs over them with `CAISSON_TEST_ENGINE=podman CAISSON_TEST_DRIVERS=docker`, or `rootless-docker`; here is what could differ.
import assert from "node:assert/strict";
import { chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "@caisson/client";
import { acrossCrash, counting } from "../support/across-crash.ts";
import { type Account, accounts, processesWith, startDaemon, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import type { OwnEngine } from "../support/own-engine.ts";
import { canStartPodman, startPodman } from "../support/podman.ts";
import { canStartRootlessDocker, startRootlessDocker } from "../support/rootless-docker.ts";

const MiB = 1024 * 1024;
const slow = counting(20, 0.1);

for (const account of accounts()) {
  check("podman", account, canStartPodman, startPodman);
  if (account.uid !== 0) check("docker", account, canStartRootlessDocker, startRootlessDocker);
}

function check(
  name: string,
  account: Account,
  can: (account: Account) => boolean,
  start: (account: Account) => Promise<OwnEngine>,
): void {
  test(`${name} as ${account.name}: projects, limits, and a daemon that is killed`, {
    timeout: 120_000,
    skip: !can(account) && `${name} is not installed whole, or /etc/subuid has no numbers for this user`,
  }, async () => {
    await using engine = await start(account);
    await using daemon = await startDaemon({ account, env: engine.env });
    const project = temporaryDirectory(account);
    writeFileSync(join(project, "file"), "before\n");
    chownSync(join(project, "file"), account.uid, account.gid);
    const { boxId, runId } = await (async () => {
      await using client = await connect({ socket: daemon.socket });
      const box = await client.create({
        driver: "docker",
        workspace: { dir: project, mode: "overlay" },
        limits: { memory: 64 * MiB },
      });
      const { mechanisms } = box.info.enforced!;
      const by = (name: string) => mechanisms.find((mechanism) => mechanism.name === name)?.by;
      assert.equal(by("root"), name);
      // Neither bounds anything for an ordinary user where control groups are of the first version: nobody says it does.
      assert.equal(by("limit.memory"), account.uid === 0 ? "container engine" : "watcher");
      assert.equal((await box.run(["sh", "-c", "cat file; echo after > file"])).stdout.text, "before\n");
      assert.equal(readFileSync(join(project, "file"), "utf8"), "before\n");
      assert.deepEqual(
        [...(await box.workspace.diff())].map(({ path }) => path),
        ["file"],
      );
      const exit = await box.run(["perl", "-e", "my @x; for (1..600) { push @x, 'a' x 1048576 } sleep 30"]);
      assert.equal(exit.oomKilled, true);
      const run = await box.exec(slow.argv);
      return { boxId: box.id, runId: run.id };
    })();
    await acrossCrash(daemon, { boxId, runId }, async ({ stdout, code }) => {
      assert.deepEqual([stdout, code], [slow.output, 0]);
    });
    await eventually(
      () => processesWith(`caisson-${boxId}`),
      (left) => left.length === 0,
    );
  });
}
