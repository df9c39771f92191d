import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { FakeDaemon, TtrpcPeer } from "./testing/index.ts";

test("the README's example runs", async () => {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
  const [, code] = /```ts\n(.*?)```/s.exec(readme)!;
  const home = mkdtempSync(join(tmpdir(), "caisson-readme-"));
  const file = join(import.meta.dirname, `readme-example-${process.pid}.ts`);
  mkdirSync(join(home, "run"));
  const peer = await new TtrpcPeer(join(home, "run/daemon.sock"), new FakeDaemon().services()).listen();
  try {
    writeFileSync(file, code!);
    const env = { PATH: process.env.PATH, CAISSON_HOME: home };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
    assert.match(stdout, /^0 hello\n/);
    assert.match(stdout, /\n6 stdout 6\n0\n0\n1 sandbox.ready\n/);
  } finally {
    rmSync(file, { force: true });
    rmSync(home, { recursive: true });
    await peer.close();
  }
});
