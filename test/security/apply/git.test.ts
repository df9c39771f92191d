// A sandbox tries to have git on the host run a program of its choice, by way of what is applied.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Client, connect } from "@caisson/client";
import {
  type Account,
  accounts,
  startDaemon,
  type TestDaemon,
  temporaryDirectory,
} from "../../support/daemon.ts";

/** Makes a repository at `$1` whose settings run a program that leaves a mark on the host. */
const trap = (mark: string) => `
  trap_at() {
    mkdir -p "$1/objects/x" "$1/refs/heads"
    echo 'ref: refs/heads/main' > "$1/HEAD"
    touch "$1/refs/heads/.keep" "$1/objects/x/.keep"
    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = "touch ${mark}; false"\\n' > "$1/config"
  }
`;

interface Attack {
  name: string;
  /** Runs in the sandbox, in the project. */
  script: string;
  /** Where somebody then asks git for its status. */
  at?: string;
}

const attacks: Attack[] = [
  {
    name: "a file that names another repository",
    script: "trap_at evil; rm -rf .git; echo 'gitdir: evil' > .git",
  },
  { name: "a link to another repository", script: "trap_at evil; rm -rf .git; ln -s evil .git" },
  { name: "settings of the repository", script: "trap_at evil; mkdir -p .git; cp evil/config .git/config" },
  { name: "settings elsewhere", script: "trap_at evil; mkdir -p .git; echo ../evil > .git/commondir" },
  { name: "a repository without the name", script: "trap_at lib", at: "lib" },
  {
    name: "the settings of one that is there",
    script: "trap_at evil; cp evil/config bare/config",
    at: "bare",
  },
  { name: "the project as a repository", script: "rm -rf .git; trap_at evil; mv evil/* ." },
  { name: "a repository inside", script: "trap_at sub/.git", at: "sub" },
];

for (const account of accounts()) {
  describe(`apply and git, as ${account.name}`, () => {
    let daemon: TestDaemon;
    let client: Client;
    before(async () => {
      daemon = await startDaemon({ account });
      client = await connect({ socket: daemon.socket });
    });
    after(async () => {
      await client.close();
      await daemon[Symbol.asyncDispose]();
    });

    async function attack(dir: string, script: string): Promise<void> {
      const run = await client.run(["sh", "-c", script], { spec: { workspace: { dir } } });
      assert.equal(run.code, 0);
      await client.sandboxes.at(run.sandboxId).workspace.apply();
    }

    test("the trap works where nothing withholds it", () => {
      const dir = project(account, true);
      const mark = join(dir, "mark");
      as(account, dir, `${trap(mark)} trap_at lib; cd lib && git status`);
      assert.equal(existsSync(mark), true);
    });

    for (const kind of ["with a repository", "without one"]) {
      for (const { name, script, at = "." } of attacks) {
        test(`${name}, in a project ${kind}`, async () => {
          const dir = project(account, kind === "with a repository");
          const mark = join(dir, "mark");
          await attack(dir, trap(mark) + script);
          as(account, dir, `cd ${at} 2>/dev/null && git -c safe.directory='*' status`);
          assert.equal(existsSync(mark), false);
        });
      }
    }

    test("a rename does not carry off what is protected", async () => {
      const dir = project(account, true);
      mkdirSync(join(dir, ".claude"));
      writeFileSync(join(dir, ".claude/settings.json"), "rules that forbid something");
      writeFileSync(join(dir, ".git/hooks/pre-commit"), "a check of the owner's");
      const settings = readFileSync(join(dir, ".git/config"), "utf8");
      await attack(dir, "mv .claude/settings.json a; mv .git/hooks/pre-commit b; mv .git/config c");
      assert.equal(readFileSync(join(dir, ".claude/settings.json"), "utf8"), "rules that forbid something");
      assert.equal(readFileSync(join(dir, ".git/hooks/pre-commit"), "utf8"), "a check of the owner's");
      assert.equal(readFileSync(join(dir, ".git/config"), "utf8"), settings);
    });

    test("git writes through no link that a sandbox has left", async () => {
      const dir = project(account, true);
      const outside = join(temporaryDirectory(account), "start-file");
      as(account, dir, `touch ${outside}`);
      await attack(
        dir,
        `rm -f .git/logs/HEAD .git/index; mkdir -p .git/logs; ln -s ${outside} .git/logs/HEAD`,
      );
      as(account, dir, "git -c user.name=a -c user.email=a@example.com commit --allow-empty -m '; evil'");
      assert.equal(readFileSync(outside, "utf8"), "");
    });
  });
}

function project(account: Account, withRepository: boolean): string {
  const dir = temporaryDirectory(account, "caisson-project-");
  after(() => spawnSync("rm", ["-rf", dir]));
  as(account, dir, "echo hello > file; git init -q --bare bare");
  const commit = "git -c user.name=a -c user.email=a@example.com commit -qm first";
  if (withRepository) as(account, dir, `git init -q . && git add file && ${commit}`);
  return dir;
}

function as({ uid, gid }: Account, cwd: string, script: string): void {
  const env = { PATH: process.env.PATH, HOME: "/nonexistent" };
  spawnSync("sh", ["-c", script], { cwd, uid, gid, env });
}
