// Every TypeScript example of the SDK's README type-checks and runs against a real daemon.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { root, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { documents } from "./support/documents.ts";

const run = promisify(execFile);
const [readme] = documents(["packages/client/README.md"]);
const examples = readme!.fences.filter(({ language }) => language === "ts");
// Below the root, so that packages are found as they are by a program of this workspace.
const dir = join(root, `.caisson/examples-${process.pid}`);
const fileOf = (line: number) => join(dir, `line-${line}.ts`);

let daemon: TestDaemon;
before(async () => {
  mkdirSync(dir, { recursive: true });
  for (const { line, text } of examples) writeFileSync(fileOf(line), text);
  const config = { extends: join(root, "tsconfig.json"), include: ["*.ts"], exclude: [] };
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
  daemon = await startDaemon();
});
after(async () => {
  await daemon[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

test("the examples of the SDK's README have no type error", async () => {
  assert.ok(examples.length > 0);
  const { stdout } = await run(join(root, "node_modules/.bin/tsc"), ["-p", dir]).catch((error) => error);
  assert.equal(stdout, "");
});

for (const { line } of examples) {
  test(`the example in line ${line} of packages/client/README.md runs`, async () => {
    const env = { PATH: process.env.PATH, CAISSON_HOME: daemon.home, TMPDIR: dir };
    await run(join(root, "node_modules/.bin/node"), [fileOf(line)], { env, timeout: 60_000 });
  });
}
