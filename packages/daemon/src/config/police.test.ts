import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CaissonError, Tier } from "@caisson/contract";
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

test("what a request leaves out of its sandbox comes from the configuration, and what it names stays", async () => {
  const user = [
    "sandbox:",
    "  profile: restrictive",
    "  minimum_tier: gvisor",
    "  image: tools:1",
    "  idle_ttl_s: 77",
    "  git_name: A",
    "  git_email: a@example.org",
    "  caches: [npm]",
    "  env: { X: one, Y: two }",
    "  network: allow",
    "  network_presets: [git]",
  ].join("\n");
  const complete = await completion({ user });
  const workspace = { dir: "/nowhere" };
  const filled = await complete({ workspace });
  assert.deepEqual(
    [filled.profile, filled.minimumTier, filled.image, filled.idleTtlS, filled.caches, filled.env],
    ["restrictive", Tier.GVISOR, "tools:1", 77, ["npm"], { X: "one", Y: "two" }],
  );
  assert.deepEqual([filled.git?.name, filled.git?.email], ["A", "a@example.org"]);
  assert.deepEqual(filled.network?.presets, ["git"]);
  const named = await complete({
    workspace,
    profile: "permissive",
    minimumTier: Tier.MICROVM,
    image: "host",
    idleTtlS: 5,
    caches: ["pip"],
    env: { X: "mine" },
    git: { name: "B", email: "b@example.org" },
  });
  assert.deepEqual(
    [named.profile, named.minimumTier, named.image, named.idleTtlS, named.caches, named.env, named.git?.name],
    ["permissive", Tier.MICROVM, "host", 5, ["pip"], { X: "mine", Y: "two" }, "B"],
  );
});

test("a profile adds its secrets and what it keeps; the machine's policy bounds those, too", async () => {
  const user = "profiles: { agent: { secrets: [TOKEN], caches: [claude] } }\n";
  const request = { profile: "agent", workspace: { dir: "/nowhere" }, secrets: ["OWN"], caches: ["npm"] };
  const { secrets, caches } = await (await completion({ user }))(request);
  assert.deepEqual(
    [secrets, caches],
    [
      ["OWN", "TOKEN"],
      ["npm", "claude"],
    ],
  );
  const alone = await (await completion({ user }))({ profile: "agent" });
  assert.deepEqual(
    [alone.secrets, alone.caches ?? []],
    [["TOKEN"], []],
    "there is no project to keep it for",
  );
  if (process.getuid?.() !== 0) return;
  const bounded = await completion({ user, policy: "secrets: [OWN]\n" });
  await assert.rejects(bounded(request), /the secret TOKEN/);
});

test("a machine's policy lowers limits that a profile or a request would have higher", {
  skip: process.getuid!() !== 0 && "needs root to own the file",
}, async () => {
  const complete = await completion({ policy: "limits:\n  disk_bytes: 1000000\n  memory_bytes: 5000000\n" });
  const { limits } = await complete({ limits: { diskBytes: 5_000_000_000n, memoryBytes: 4_500_000n } });
  assert.deepEqual([limits?.diskBytes, limits?.memoryBytes], [1_000_000n, 4_500_000n]);
  assert.equal((await complete({})).limits?.diskBytes, 1_000_000n);
  assert.equal((await complete({})).limits?.memoryBytes, 5_000_000n);
  const large = await completion({ policy: `limits:\n  memory_bytes: ${16 * 1024 ** 3}\n` });
  const memory = async (memoryBytes: bigint) =>
    (await large({ limits: { memoryBytes } })).limits?.memoryBytes;
  assert.equal(await memory(1n << 40n), 16n << 30n);
  assert.equal(await memory(0n), 0n, "what nobody named, and is allowed, is not named here either");
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

test("the configuration's network rules come on top of a request's, and open nothing where the network is off", async () => {
  const user = "sandbox:\n  network_allow: [a.example]\n  network_deny: [d.example]\n";
  const complete = await completion({ user });
  const network = async (init: NonNullable<Parameters<CompleteSpec>[0]>) => {
    const { mode, allow, deny } = (await complete(init)).network!;
    return { mode, allow, deny };
  };
  assert.deepEqual(await network({}), { mode: 0, allow: [], deny: ["d.example"] });
  assert.deepEqual(await network({ network: { allow: ["b.example"] } }), {
    mode: 2,
    allow: ["b.example", "a.example"],
    deny: ["d.example"],
  });
  assert.deepEqual(await network({ network: { mode: 1 } }), { mode: 1, allow: [], deny: ["d.example"] });
  assert.deepEqual(await network({ profile: "permissive" }), {
    mode: 0,
    allow: ["a.example"],
    deny: ["d.example"],
  });
  const asking = await completion({ user: "sandbox:\n  network: ask\n" });
  assert.equal((await asking({})).network!.mode, 3);
  assert.equal((await asking({ network: { mode: 1 } })).network!.mode, 1);
});
