// Projects of each language, built and tested inside with the host's own toolchains and without any network.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { type Account, accounts, startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { Launcher } from "../../support/launcher.ts";
import { lendRust } from "../../support/lent-rust.ts";
import { plain } from "./plain.ts";
import { has, layOut } from "./project.ts";
import { withDependencies } from "./with-dependencies.ts";

for (const account of accounts()) suite(account);

function suite(account: Account): void {
  describe(`projects with the host's own toolchains as ${account.name}`, { timeout: 900_000 }, () => {
    let daemon: TestDaemon;
    // An ordinary user beside root gets a Rust like his: machines for tests have one for root.
    const lent = account.uid === process.getuid!() ? undefined : lendRust(account);
    before(async () => {
      daemon = await startDaemon({ account });
    });
    after(async () => {
      await daemon[Symbol.asyncDispose]();
      if (lent) rmSync(lent.home, { recursive: true });
    });

    for (const [name, project] of Object.entries({ ...plain, ...withDependencies })) {
      const skip = !has(account, project.needs, lent?.env) && `${account.name} has no ${project.needs}`;
      it(name, { skip }, async () => {
        const dir = await layOut(project, daemon);
        const options = project.cache ? ["--cache", project.cache.name] : [];
        const { code, out, err } = await new Launcher(daemon, dir).run(
          ["run", ...options, "--", ...project.argv],
          { env: lent?.env ?? {} },
        );
        assert.equal(code, 0, `${out}${err}`);
        assert.match(out, project.says);
        rmSync(dir, { recursive: true });
      });
    }
  });
}
