// Images as the root of sandboxes, in every tier that can; what images are otherwise is in test/e2e/images.test.ts.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { temporaryDirectory } from "../support/daemon.ts";
import { refused } from "../support/errors.ts";
import { busyboxLayer, writeLayout } from "../support/oci-image.ts";
import { conform } from "./conform.ts";

const config = { Env: ["PATH=/bin", "FROM_IMAGE=yes"], WorkingDir: "/app" };

await conform(({ box: make, client, driver, account, daemon }) => {
  const image = `tiny-${driver}:1`;

  it("has the image's files read-only, its variables and directory, and its own user; and leaves it as it was", async () => {
    const { drivers } = await client.system.capabilities();
    if (!drivers.find(({ name }) => name === driver)!.capabilities.includes("roots")) {
      // Without the capability it is refused, never something else taken for it.
      await refused("NO_DRIVER", make({ image: "none:1" }));
      return;
    }
    const dir = temporaryDirectory(account);
    writeLayout(dir, { name: image, layers: [busyboxLayer()], config, compress: "gzip" });
    spawnSync("chmod", ["-R", "a+rX", dir]);
    await client.images.import({ path: dir });
    rmSync(dir, { recursive: true });
    const project = temporaryDirectory(account);
    writeFileSync(join(project, "file"), "original\n");
    chownSync(join(project, "file"), account.uid, account.gid);
    await using box = await make({ image, workspace: { dir: project } });
    const sh = (script: string, options = {}) => box.run(["sh", "-c", script], options);
    const { stdout } = await sh(
      "cat /app/greeting /etc/motd /var/lib/data; echo $FROM_IMAGE $HOME; id -u; test -e /usr; echo $?",
    );
    // What only its owner may read: nobody maps owners in gVisor.
    const data = driver === "runsc" ? "" : "data\n";
    assert.equal(stdout.text, `from the image\nwelcome\n${data}yes /home/agent\n1000\n1\n`);
    const writes = await sh(
      "touch /app/x /bin/x /etc/x /x /var/lib/data; touch /tmp/x ~/x && echo private; grep -c ^agent: /etc/passwd",
    );
    assert.equal(writes.stdout.text, "private\n1\n", writes.stderr.text);
    assert.equal(writes.stderr.text.match(/Read-only|denied|not permitted/gi)?.length, 5, writes.stderr.text);
    await sh("echo changed > file");
    assert.deepEqual(
      (await box.workspace.diff()).map(({ path }) => path),
      ["file"],
    );
    const found = spawnSync("find", [join(daemon.home, "images"), "-name", "x"], { encoding: "utf8" });
    assert.equal(found.stdout, "");
  });
});
