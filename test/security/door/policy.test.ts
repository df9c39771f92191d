import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Config } from "../../../packages/daemon/src/config/config.ts";
import { completeSpec } from "../../../packages/daemon/src/config/police.ts";
import type { Trust } from "../../../packages/daemon/src/config/trust.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-policy-"));
after(() => rmSync(dir, { recursive: true }));
const needsRoot = { skip: process.getuid!() !== 0 && "a policy belongs to root" };
const forbidden = { code: "POLICY_FORBIDS" };

/** What a sandbox gets on a machine with this policy, for a user with this configuration. */
async function completing(policy: string, user = "") {
  const [policyFile, userFile] = [join(dir, "policy.yaml"), join(dir, "user.yaml")];
  writeFileSync(policyFile, policy, { mode: 0o644 });
  writeFileSync(userFile, user);
  const config = await Config.load({ policyFile, userFile, env: {} });
  return completeSpec(config, { trusts: () => false } as unknown as Trust);
}

test("a rule for a kind of agent brings in no profile that the policy leaves out", needsRoot, async () => {
  const complete = await completing("profiles: [moderate]\n", "agents: {sly: {profile: permissive}}\n");
  await assert.rejects(complete({ agent: "sly" }), forbidden);
  assert.equal((await complete({ agent: "plain" })).profile, "");
});

test("a profile of the user's own adds no system calls that the policy leaves out", needsRoot, async () => {
  const complete = await completing(
    "syscalls: []\n",
    "profiles: {sly: {extends: moderate, syscalls: [nested]}}\n",
  );
  await assert.rejects(complete({ profile: "sly" }), forbidden);
  await assert.rejects(complete({ profile: "permissive" }), forbidden);
  await complete({ profile: "moderate" });
});

test("a link below an allowed directory does not lead out of it", needsRoot, async () => {
  mkdirSync(join(dir, "allowed/inner"), { recursive: true });
  mkdirSync(join(dir, "elsewhere"));
  symlinkSync("../elsewhere", join(dir, "allowed/link"));
  const complete = await completing(`workspaces: [${dir}/allowed]\n`);
  await assert.rejects(complete({ workspace: { dir: join(dir, "allowed/link") } }), forbidden);
  await complete({ workspace: { dir: join(dir, "allowed/inner") } });
});

test("a policy names the only secrets that a sandbox may be given", needsRoot, async () => {
  const complete = await completing("secrets: [ALLOWED]\n");
  await complete({ secrets: ["ALLOWED"] });
  await assert.rejects(complete({ secrets: ["ALLOWED", "OTHER"] }), forbidden);
});

test("a policy lowers a profile's limits and never raises them", needsRoot, async () => {
  const complete = await completing("limits: {pids: 4000000, memory_bytes: 8388608}\n");
  const { limits } = await complete({ profile: "restrictive" });
  assert.ok(limits!.pids! < 4_000_000);
  assert.equal(limits!.memoryBytes, 8388608n);
});
