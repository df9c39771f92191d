import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CommandSchema } from "@caisson/contract";
import { shellStateArgv } from "./index.ts";

/** Runs scripts one after the other as a sandbox would, with the state file in a directory of the test's. */
function shell(path = process.env.PATH!) {
  const dir = mkdtempSync(join(tmpdir(), "caisson-shell-"));
  const run = (script: string, options: { env?: Record<string, string>; cwd?: string } = {}) => {
    const command = create(CommandSchema, { argv: [script], env: options.env ?? {}, cwd: options.cwd ?? "" });
    const argv = shellStateArgv(command).map((word) =>
      word.endsWith("shell-state") ? join(dir, "state/file") : word,
    );
    return spawnSync(argv[0]!, argv.slice(1), { encoding: "utf8", env: { PATH: path }, cwd: "/" });
  };
  return { dir, run, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

test("directory, variables, functions, options and aliases last from one command to the next", () => {
  using sh = shell();
  const { run } = sh;
  const first = run(
    `cd /usr/lib; export A="x y
z'q\\"\\$HOME"; B=local; list=(1 "2 3"); declare -A map=([k]=v); f() { echo "f $1"; }; set -o pipefail; shopt -s extglob; alias ll='ls -l'; readonly R=5; umask 027; exit 3`,
  );
  assert.equal(first.status, 3);
  assert.equal(first.stderr, "");
  const second = run(
    `pwd; printf '%s|' "$A" "$B" "\${list[1]}" "\${map[k]}"; echo; f hi; shopt extglob; umask; alias ll; env | grep -c '^A='; set -o | grep pipefail; echo "$#"`,
  );
  assert.equal(second.stderr, "");
  assert.match(
    second.stdout,
    /^\/usr\/lib\nx y\nz'q"\$HOME\|local\|2 3\|v\|\nf hi\nextglob\s+on\n0027\nalias ll='ls -l'\n1\npipefail\s+on\n0\n$/,
  );
});

test("a command's own variables and directory win over the state, and a failing command keeps it", () => {
  using sh = shell();
  const { run } = sh;
  run("export A=old; cd /usr");
  const second = run("echo $A; pwd; set -e; B=kept; false; echo not reached", {
    env: { A: "new" },
    cwd: "/etc",
  });
  assert.equal(second.status, 1);
  assert.equal(second.stdout, "new\n/etc\n");
  assert.equal(run("set +e; echo $A $B; pwd").stdout, "new kept\n/etc\n");
});

test("a command that is killed leaves the state of before", () => {
  using sh = shell();
  const { run } = sh;
  run("A=1");
  assert.equal(run("A=2; kill -9 $$").signal, "SIGKILL");
  assert.equal(run("echo $A").stdout, "1\n");
});

test("without bash, directory and exported variables last", () => {
  using place = shell();
  const bin = join(place.dir, "bin");
  mkdirSync(bin);
  for (const name of ["mkdir", "grep", "mv", "sed", "cat", "env"])
    symlinkSync(`/bin/${name}`, join(bin, name));
  using sh = shell(bin);
  const { run } = sh;
  assert.equal(run(`cd /usr/lib; export A="x 'y'"; exit 4`).status, 4);
  const second = run('pwd; echo "$A"; env | grep -c __caisson');
  assert.equal(second.stderr, "");
  assert.equal(second.stdout, "/usr/lib\nx 'y'\n0\n");
});
