import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CaissonError } from "@caisson/contract";
import type { CompleteSpec } from "@caisson/sandbox";
import { Config } from "./config.ts";
import { completeSpec } from "./police.ts";
import type { Trust } from "./trust.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-police-"));
after(() => rmSync(dir, { recursive: true }));

async function completion(sources: { user?: string; policy?: string }): Promise<CompleteSpec> {
  const file = (name: string, text: string | undefined) => {
    const path = join(dir, name);
    rmSync(path, { force: true });
    if (text !== undefined) writeFileSync(path, text, { mode: 0o644 });
    return path;
  };
  const config = await Config.load({
    userFile: file("user.yaml", sources.user),
    policyFile: file("policy.yaml", sources.policy),
    env: {},
  });
  return completeSpec(config, { trusts: () => true } as unknown as Trust);
}

test("toolchains are left to the profile unless the configuration or the request says otherwise", async () => {
  const complete = await completion({});
  assert.equal((await complete({})).toolchains, "");
  assert.equal((await complete({ toolchains: "off" })).toolchains, "off");
  const switchedOff = await completion({ user: "sandbox:\n  toolchains: off\n" });
  assert.equal((await switchedOff({})).toolchains, "off");
  assert.equal((await switchedOff({ toolchains: "auto" })).toolchains, "auto");
});

test("a machine's policy can forbid toolchains to everybody", {
  skip: process.getuid!() !== 0 && "needs root to own the file",
}, async () => {
  const complete = await completion({ policy: "toolchains: false\n" });
  assert.equal((await complete({})).toolchains, "off");
  await assert.rejects(
    complete({ toolchains: "auto" }),
    (error) => error instanceof CaissonError && error.code === "POLICY_FORBIDS",
  );
});
