import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { approvalSettings, RulesFile } from "./approvals.ts";
import { Config } from "./config.ts";
import { readConfigFile } from "./files.ts";
import { checkPolicy } from "./policy.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-approvals-"));
after(() => rmSync(dir, { recursive: true }));

const invalid = (words: RegExp) => (error: unknown) =>
  error instanceof CaissonError && error.code === "CONFIG_INVALID" && words.test(error.message);

test("answers for always are kept in a file of the user's alone, each once, the latest of two opposites", async () => {
  const path = join(dir, "deeper/approvals.yaml");
  const file = new RulesFile(path);
  assert.deepEqual(await file.read(), []);
  await Promise.all([
    file.add("allow network a.test:443"),
    file.add("allow network b.test:443"),
    file.add("allow network a.test:443"),
    file.add("deny network b.test:443"),
  ]);
  const texts = (await file.read()).map(({ text }) => text);
  assert.deepEqual(texts, ["allow network a.test:443", "deny network b.test:443"]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.match(readFileSync(path, "utf8"), /- allow network a\.test:443\n/);
});

test("what a person changes in the file counts at once, what is wrong in it is told", async () => {
  const path = join(dir, "edited.yaml");
  const file = new RulesFile(path);
  await file.add("allow network a.test:443");
  writeFileSync(path, "rules:\n  - deny network *\n");
  assert.deepEqual(
    (await file.read()).map(({ text }) => text),
    ["deny network *"],
  );
  writeFileSync(path, "rules: [permit everything]\n");
  await assert.rejects(file.read(), invalid(/permit everything/));
});

test("the configuration says what is asked for and which rules answer", async () => {
  const env = {
    CAISSON_APPROVALS_ASK: "network,apply",
    CAISSON_APPROVALS_TIMEOUT_S: "5",
    CAISSON_APPROVALS_RULES: "deny network *.evil.test:*",
  };
  const none = join(dir, "none");
  const config = await Config.load({ userFile: none, policyFile: none, env });
  const settings = approvalSettings(config, none);
  assert.equal(settings.timeoutMs, 5000);
  assert.deepEqual(settings.kinds, ["network", "apply"]);
  assert.equal(settings.rules?.[0]?.pattern, "*.evil.test:*");
  const wrong = await Config.load({
    userFile: none,
    policyFile: none,
    env: { CAISSON_APPROVALS_ASK: "lunch" },
  });
  assert.throws(() => approvalSettings(wrong, none), invalid(/lunch/));
});

test("a policy bounds approvals; what it says wrong is refused", async () => {
  const read = async (text: string) => {
    const path = join(dir, "policy.yaml");
    writeFileSync(path, text);
    return checkPolicy((await readConfigFile(path))!);
  };
  const { approvals } = await read(
    "approvals: {kinds: [network], always: false, deny: ['network *.corp.test:*']}",
  );
  assert.deepEqual(approvals, { kinds: ["network"], always: false, deny: ["network *.corp.test:*"] });
  await assert.rejects(read("approvals: {kind: [network]}"), invalid(/approvals\.kind/));
  await assert.rejects(read("approvals: {always: 'no'}"), invalid(/true or false/));
});
