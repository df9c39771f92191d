// Projects with real dependencies, built and tested inside without any network, from caches that were filled outside
// and are kept for the project. The host's own registries are used to fill them.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
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
  needs: string;
  files: Record<string, string>;
  /** Run outside, in the project; `$CACHE` is where the cache is to be. */
  prepare: string;
  /** The cache that it fills, and where that is inside. */
  cache?: { name: string; place: string };
  argv: string[];
  says: RegExp;
}

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sum</groupId><artifactId>sum</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope></dependency>
  </dependencies>
</project>
`;

const projects: Readonly<Record<string, Project>> = {
  "mvn -o test": {
    needs: "mvn --version",
    files: {
      "pom.xml": pom,
      "src/test/java/SumTest.java":
        "public class SumTest {\n  @org.junit.Test public void sum() { org.junit.Assert.assertEquals(2, 1 + 1); }\n}\n",
    },
    // Maven notes from which mirror a file came, and inside there is none.
    prepare:
      "mvn -q -B -Dmaven.repo.local=$CACHE test && rm -rf target && find $CACHE -name _remote.repositories -delete",
    cache: { name: "maven", place: ".m2/repository" },
    argv: ["mvn", "-o", "-B", "test"],
    says: /Tests run: 1, Failures: 0[\s\S]*BUILD SUCCESS/,
  },
  "npm ci && npm test": {
    needs: "npm --version",
    files: {
      "package.json":
        '{"name":"sum","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"ms":"2.1.3"}}',
      "test.js":
        'require("node:assert").equal(require("ms")("2 days"), 172800000);\nconsole.log("sum is right");\n',
    },
    prepare:
      "npm install --cache $CACHE --no-audit --no-fund && rm -rf node_modules && npm ci --cache $CACHE --no-audit --no-fund && rm -rf node_modules",
    cache: { name: "npm", place: ".npm" },
    argv: ["sh", "-c", "npm ci --offline --no-audit --no-fund && npm test"],
    says: /sum is right/,
  },
  "go test with a module": {
    needs: "go version",
    files: {
      "go.mod": "module sum\n\ngo 1.20\n\nrequire github.com/google/uuid v1.6.0\n",
      "sum_test.go":
        'package sum\n\nimport (\n\t"testing"\n\n\t"github.com/google/uuid"\n)\n\nfunc TestSum(t *testing.T) {\n\tif len(uuid.NewString()) != 36 {\n\t\tt.Fatal()\n\t}\n}\n',
    },
    prepare:
      "GOMODCACHE=$CACHE GOFLAGS=-modcacherw go mod download && GOMODCACHE=$CACHE GOFLAGS=-modcacherw go mod tidy",
    cache: { name: "go", place: "go/pkg/mod" },
    argv: ["go", "test", "./..."],
    says: /^ok\s+sum/m,
  },
  "cargo test with a vendored crate": {
    needs: "cargo --version",
    files: {
      "Cargo.toml":
        '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nitoa = "=1.0.11"\n',
      ".cargo/config.toml":
        '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n',
      "src/lib.rs": '#[test]\nfn sum() {\n    assert_eq!(itoa::Buffer::new().format(1 + 1), "2");\n}\n',
    },
    // The project's settings lead to what is about to be made.
    prepare: "mv .cargo aside && cargo vendor --quiet && mv aside .cargo",
    argv: ["cargo", "test", "--offline"],
    says: /test sum \.\.\. ok/,
  },
  "pytest that the project brings": {
    needs: "python3 --version",
    files: { "test_sum.py": "def test_sum():\n    assert 1 + 1 == 2\n" },
    prepare: "python3 -m pip install --quiet --target deps pytest==8.3.4 tomli exceptiongroup",
    argv: ["sh", "-c", "PYTHONPATH=deps python3 -m pytest -q -p no:cacheprovider test_sum.py"],
    says: /1 passed/,
  },
};

describe("projects with dependencies, offline", { timeout: 900_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), "caisson-prepared-"));
  after(() => rmSync(scratch, { recursive: true, force: true }));
  const prepared = new Map<string, string>();

  /** A project and its cache, filled once by whoever runs the tests. */
  function prepare(name: string, project: Project): string {
    const known = prepared.get(name);
    if (known) return known;
    const dir = mkdtempSync(join(scratch, "p-"));
    for (const [file, content] of Object.entries(project.files)) {
      mkdirSync(dirname(join(dir, "project", file)), { recursive: true });
      writeFileSync(join(dir, "project", file), content);
    }
    mkdirSync(join(dir, "cache"));
    execFileSync("sh", ["-ec", project.prepare], {
      cwd: join(dir, "project"),
      env: { ...process.env, CACHE: join(dir, "cache") },
      stdio: ["ignore", "ignore", "inherit"],
    });
    prepared.set(name, dir);
    return dir;
  }

  for (const account of accounts()) suite(account, prepare);
});

function suite(account: Account, prepare: (name: string, project: Project) => string): void {
  describe(`as ${account.name}`, () => {
    let daemon: TestDaemon;
    const lent = account.uid === process.getuid!() ? undefined : lendRust(account);
    before(async () => {
      daemon = await startDaemon({ account });
    });
    after(async () => {
      await daemon[Symbol.asyncDispose]();
      if (lent) rmSync(lent.home, { recursive: true });
    });

    for (const [name, project] of Object.entries(projects)) {
      const skip = !has(account, project.needs, lent?.env) && `${account.name} has no ${project.needs}`;
      it(name, { skip }, async () => {
        const from = prepare(name, project);
        const dir = temporaryDirectory(account, "caisson-project-");
        cpSync(join(from, "project"), dir, { recursive: true });
        spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, dir]);
        const caches = project.cache ? [project.cache.name] : [];
        if (project.cache) await fill(daemon, dir, project.cache, join(from, "cache"));
        const caisson = new Launcher(daemon, dir);
        const options = caches.flatMap((cache) => ["--cache", cache]);
        const { code, out, err } = await caisson.run(["run", ...options, "--", ...project.argv], {
          env: lent?.env ?? {},
        });
        assert.equal(code, 0, `${out}${err}`);
        assert.match(out, project.says);
        rmSync(dir, { recursive: true });
      });
    }
  });
}

/** Brings what was downloaded outside into the project's own cache, as people do: through a sandbox. */
async function fill(
  daemon: TestDaemon,
  dir: string,
  { name, place }: { name: string; place: string },
  from: string,
): Promise<void> {
  const client = await connect({ socket: daemon.socket });
  try {
    const box = await client.create({ workspace: { dir }, caches: [name] });
    const tar = spawnSync("tar", ["-C", from, "-cf", "-", "."], { maxBuffer: 256 << 20 });
    await box.files.upload(`/home/agent/${place}`, tar.stdout);
    await box.delete();
  } finally {
    await client.close();
  }
}

/** Would the account's own shell run it? */
function has({ uid, gid }: Account, command: string, env: Record<string, string> = {}): boolean {
  const options = { uid, gid, cwd: "/", env: { ...process.env, ...env } };
  return spawnSync("sh", ["-c", `${command} >/dev/null 2>&1`], options).status === 0;
}
