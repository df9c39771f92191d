// The set-up of a checkout, with stand-ins for npm and Rust: what it does when it is interrupted and begun again.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

/** Fails beside another one, and goes on for a while when it is interrupted, as npm does. */
const npm = `#!/bin/sh
trap '' INT TERM
mkdir busy || { echo 'npm error two at once'; exit 1; }
while [ ! -e go ]; do sleep 0.05; done
mkdir -p node_modules/.bin && : > node_modules/.bin/node && chmod 755 node_modules/.bin/node
rmdir busy
`;
const cargo = `#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "guest/target/$2/release" && echo guest > "guest/target/$2/release/caisson-guest"
`;

function makeCheckout(): Disposable & { dir: string } {
  const dir = mkdtempSync(join(tmpdir(), "caisson-set-up-"));
  for (const sub of ["scripts", "guest/src", "bin"]) mkdirSync(join(dir, sub), { recursive: true });
  cpSync(join(root, "scripts/bootstrap.sh"), join(dir, "scripts/bootstrap.sh"));
  writeFileSync(join(dir, "package-lock.json"), "{}");
  writeFileSync(join(dir, "guest/src/main.rs"), "");
  const programs = { npm, cargo, rustc: "#!/bin/sh\necho /nonexistent\n", bwrap: "#!/bin/sh\n" };
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(dir, "bin", name), text);
    chmodSync(join(dir, "bin", name), 0o755);
  }
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

function begin(dir: string) {
  const child = spawn("sh", ["scripts/bootstrap.sh"], {
    cwd: dir,
    detached: true,
    env: { PATH: `${join(dir, "bin")}:/usr/bin:/bin`, HOME: dir },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (data) => {
    said += data;
  });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { pid: child.pid!, ended, said: () => said };
}

test("what an interrupted set-up has begun is waited for, not run into", { timeout: 60_000 }, async () => {
  using checkout = makeCheckout();
  const { dir } = checkout;
  const first = begin(dir);
  await eventually(
    () => existsSync(join(dir, "busy")),
    (is) => is,
  );
  process.kill(-first.pid, "SIGINT");
  assert.notEqual(await first.ended, 0);
  const second = begin(dir);
  await eventually(second.said, (text) => text.includes("waiting for another set-up of this checkout"));
  writeFileSync(join(dir, "go"), "");
  assert.equal(await second.ended, 0, second.said());
  assert.ok(existsSync(join(dir, ".caisson/bin/caisson")));
});
