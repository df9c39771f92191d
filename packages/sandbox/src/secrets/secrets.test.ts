import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { parseDefinitions } from "./definition.ts";
import { newPlaceholder } from "./placeholder.ts";
import { Secrets } from "./secrets.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-secrets-"));
after(() => rmSync(dir, { recursive: true }));
let files = 0;
const open = (table: Record<string, unknown> = {}, file = join(dir, `${files++}.json`)) =>
  new Secrets(parseDefinitions(table), file);

const code =
  (expected: string, never = "nothing") =>
  (error: unknown) =>
    error instanceof CaissonError &&
    error.code === expected &&
    !`${error.stack}${error.cause}`.includes(never);

test("a value that was set is the owner's alone, counts at once and after a restart, until it is removed", async () => {
  const file = join(dir, "kept.json");
  const secrets = open({}, file);
  const granted = secrets.granted("TOKEN", "placeholder");
  await secrets.set("TOKEN", { stored: true, hosts: ["a.test"] }, "first-value-1");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(await secrets.read(["TOKEN"]), new Map([["TOKEN", "first-value-1"]]));
  assert.equal(granted.value(), "first-value-1");
  await secrets.set("TOKEN", { stored: true, hosts: ["b.test"] }, "second-value-2");
  assert.equal(granted.value(), "second-value-2");
  assert.ok(granted.covers("b.test", 443, true) && !granted.covers("a.test", 443, true));
  const again = open({}, file);
  assert.equal((await again.read(["TOKEN"])).get("TOKEN"), "second-value-2");
  assert.ok(!JSON.stringify(await again.list()).includes("second-value"));
  await secrets.remove("TOKEN");
  assert.equal(granted.value(), undefined);
  assert.ok(!granted.covers("b.test", 443, true));
  assert.ok(!readFileSync(file, "utf8").includes("second-value"));
  await assert.rejects(secrets.read(["TOKEN"]), code("SECRET_NOT_FOUND"));
});

test("values come from variables, files and programs, without the line's end", async () => {
  process.env.CAISSON_TEST_SECRET = "from-a-variable";
  writeFileSync(join(dir, "value"), "from-a-file\n");
  const hosts = ["a.test"];
  const secrets = open({
    A: { env: "CAISSON_TEST_SECRET", hosts },
    B: { file: join(dir, "value"), hosts },
    C: { command: ["sh", "-c", "echo from-a-program; pwd >&2"], hosts },
  });
  assert.deepEqual(
    [...(await secrets.read(["A", "B", "C"])).values()],
    ["from-a-variable", "from-a-file", "from-a-program"],
  );
  delete process.env.CAISSON_TEST_SECRET;
});

test("what cannot be read is an error that holds nothing of it", async () => {
  const hosts = ["a.test"];
  writeFileSync(join(dir, "lines"), "first-canary\nsecond-canary");
  const secrets = open({
    A: { env: "CAISSON_TEST_NOT_SET", hosts },
    B: { file: dir, hosts },
    C: { file: join(dir, "lines"), hosts },
    D: { command: ["sh", "-c", "echo canary-output; echo canary-error >&2; exit 3"], hosts },
    E: { command: ["caisson-test-no-such-program"], hosts },
    F: { command: ["head", "-c", "100000", "/dev/zero"], hosts },
  });
  for (const name of ["A", "B", "C", "D", "E", "F"])
    await assert.rejects(secrets.read([name]), code("SECRET_UNAVAILABLE", "canary"), name);
});

test("what the configuration defines is changed there", async () => {
  const secrets = open({ A: { env: "HOME", hosts: ["a.test"] } });
  await assert.rejects(
    secrets.set("A", { stored: true, hosts: ["b.test"] }, "another-value"),
    code("INVALID_INPUT", "another-value"),
  );
  await assert.rejects(secrets.remove("A"), code("INVALID_INPUT"));
});

test("a value that could break out of a header is refused", async () => {
  const secrets = open();
  for (const value of ["a\r\nX: y", "a\0b", "", "x".repeat(20_000)])
    await assert.rejects(secrets.set("A", { stored: true, hosts: ["a.test"] }, value), code("INVALID_INPUT"));
});

test("a placeholder looks like a token of the same service, holds nothing of the value and never comes twice", () => {
  const value = "ghp_abcdefghijklmnop";
  const made = new Set(Array.from({ length: 100 }, () => newPlaceholder(value)));
  assert.equal(made.size, 100);
  for (const placeholder of made) assert.match(placeholder, /^ghp_[A-Za-z0-9]{40}$/);
  assert.match(newPlaceholder("correct horse battery"), /^csp_/);
});
