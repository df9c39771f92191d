// Small projects of each language, built and tested inside with the host's own toolchains.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  type Account,
  accounts,
  startDaemon,
  type TestDaemon,
  temporaryDirectory,
} from "../support/daemon.ts";
import { Launcher } from "../support/launcher.ts";
import { lendRust } from "../support/lent-rust.ts";

interface Project {
  /** A command that works where the toolchain is. */
  needs: string;
  files: Record<string, string>;
  argv: string[];
  says: RegExp;
}

const projects: Readonly<Record<string, Project>> = {
  "node --test": {
    needs: "node --version",
    files: {
      "package.json": '{"type":"module","scripts":{"test":"node --test"}}',
      "sum.test.js":
        'import test from "node:test";\nimport assert from "node:assert";\ntest("sum", () => assert.equal(1 + 1, 2));\n',
    },
    argv: ["npm", "test", "--offline"],
    says: /pass 1\b/,
  },
  "cargo test": {
    needs: "cargo --version",
    files: {
      "Cargo.toml": '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n',
      "src/lib.rs": "#[test]\nfn sum() {\n    assert_eq!(1 + 1, 2);\n}\n",
    },
    argv: ["cargo", "test", "--offline"],
    says: /test sum \.\.\. ok/,
  },
  "python -m unittest": {
    needs: "python3 --version",
    files: {
      "test_sum.py":
        "import unittest\nclass Sum(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 2)\n",
    },
    argv: ["sh", "-c", "python3 -m venv --without-pip .venv && .venv/bin/python -m unittest 2>&1"],
    says: /^OK$/m,
  },
  pytest: {
    needs: "python3 -m pytest --version",
    files: { "test_sum.py": "def test_sum():\n    assert 1 + 1 == 2\n" },
    argv: ["python3", "-m", "pytest", "-q"],
    says: /1 passed/,
  },
  "go test": {
    needs: "go version",
    files: {
      "go.mod": "module sum\n\ngo 1.20\n",
      "sum_test.go":
        'package sum\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {\n\tif 1+1 != 2 {\n\t\tt.Fatal()\n\t}\n}\n',
    },
    argv: ["go", "test", "./..."],
    says: /^ok\s+sum/m,
  },
};

for (const account of accounts()) suite(account);

function suite(account: Account): void {
  describe(`projects with the host's own toolchains as ${account.name}`, { timeout: 600_000 }, () => {
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

    for (const [name, project] of Object.entries(projects)) {
      const there = has(account, project.needs, lent?.env);
      it(name, { skip: !there && `${account.name} has no ${project.needs}` }, async () => {
        const dir = temporaryDirectory(account, "caisson-project-");
        for (const [file, content] of Object.entries(project.files)) {
          mkdirSync(dirname(join(dir, file)), { recursive: true });
          writeFileSync(join(dir, file), content);
        }
        spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, dir]);
        const caisson = new Launcher(daemon, dir);
        const { code, out, err } = await caisson.run(["run", "--", ...project.argv], {
          env: lent?.env ?? {},
        });
        assert.equal(code, 0, `${out}${err}`);
        assert.match(out, project.says);
        rmSync(dir, { recursive: true });
      });
    }
  });
}

/** Would the account's own shell run it? */
function has({ uid, gid }: Account, command: string, env: Record<string, string> = {}): boolean {
  const options = { uid, gid, cwd: "/", env: { ...process.env, ...env } };
  return spawnSync("sh", ["-c", `${command} >/dev/null 2>&1`], options).status === 0;
}
