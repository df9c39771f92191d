import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { Config } from "./config.ts";
import { readConfigFile } from "./files.ts";
import { checkPolicy, readPolicy } from "./policy.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-config-"));
after(() => rmSync(dir, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

function load(
  sources: { user?: string; policy?: string; env?: Record<string, string> } = {},
): Promise<Config> {
  return Config.load({
    userFile: sources.user ?? join(dir, "none"),
    policyFile: sources.policy ?? join(dir, "none"),
    env: sources.env ?? {},
  });
}

const invalid = (words: RegExp) => (error: unknown) =>
  error instanceof CaissonError && error.code === "CONFIG_INVALID" && words.test(error.message);

test("without any file every setting has its default", async () => {
  const config = await load();
  assert.equal(config.text("sandbox.profile"), "moderate");
  assert.ok(config.isDefault("pool.min"));
});

test("the environment beats the user's file, which beats the defaults", async () => {
  const user = file("user.yaml", "pool:\n  min: 3\n  max: 5\n");
  const config = await load({ user, env: { CAISSON_POOL_MIN: "4" } });
  assert.equal(config.number("pool.min"), 4);
  assert.equal(config.number("pool.max"), 5);
  const { values } = await config.forProject("", () => false);
  assert.match(values.get("pool.min")!.source, /^environment CAISSON_POOL_MIN$/);
  assert.match(values.get("pool.max")!.source, /^user file /);
});

test("a typo in a file is an error that suggests the right name", async () => {
  const user = file("typo.yaml", "pool:\n  mim: 3\n");
  await assert.rejects(load({ user }), invalid(/no setting pool\.mim; did you mean pool\.min/));
});

test("so is one in a variable, a project's file and a policy", async () => {
  await assert.rejects(
    load({ env: { CAISSON_POOL_MNI: "1" } }),
    invalid(/no variable CAISSON_POOL_MNI; did you mean CAISSON_POOL_MIN\?/),
  );
  await assert.rejects(load({ env: { CAISSON_HOEM: "/x" } }), invalid(/did you mean CAISSON_HOME\?/));
  await load({ env: { CAISSON_SOMETHING_OF_MINE: "1", CAISSON_URL: "http://x", POOL_MNI: "1" } });
  const project = mkdtempSync(join(dir, "project-"));
  writeFileSync(join(project, "caisson.yaml"), "sandbox:\n  profil: restrictive\n");
  const config = await load();
  await assert.rejects(
    config.forProject(project, () => true),
    invalid(/caisson\.yaml: there is no setting sandbox\.profil; did you mean sandbox\.profile\?/),
  );
  const policy = { path: "/etc/caisson/policy.yaml", sha256: "", tree: { minimum_teir: "gvisor" } };
  assert.throws(() => checkPolicy(policy), invalid(/no bound minimum_teir; did you mean minimum_tier\?/));
});

test("a value of the wrong kind or range is an error that names where it stands", async () => {
  await assert.rejects(
    load({ user: file("range.yaml", "pool: {min: 65}") }),
    invalid(/whole number from 0 to 64/),
  );
  await assert.rejects(
    load({ env: { CAISSON_LOG_LEVEL: "loud" } }),
    invalid(/CAISSON_LOG_LEVEL: log\.level must be one of/),
  );
});

test("a file that is not YAML names its line", async () => {
  await assert.rejects(load({ user: file("broken.yaml", "a: [\n") }), invalid(/not valid YAML/));
});

test("a project's file counts only once it is trusted, and only for what a project may set", async () => {
  const config = await load();
  file("caisson.yaml", "sandbox:\n  profile: restrictive\n");
  const distrusted = await config.forProject(dir, () => false);
  assert.equal(distrusted.values.get("sandbox.profile")!.value, "moderate");
  assert.equal(distrusted.untrusted, join(dir, "caisson.yaml"));
  const trusted = await config.forProject(dir, () => true);
  assert.equal(trusted.values.get("sandbox.profile")!.value, "restrictive");
  file("caisson.yaml", "listen:\n  tcp: 0.0.0.0:1\n");
  await assert.rejects(
    config.forProject(dir, () => true),
    invalid(/a project cannot set listen\.tcp/),
  );
});

test("a policy that others can write is refused", {
  skip: process.getuid!() !== 0 && "needs root to own the file",
}, async () => {
  const policy = file("policy.yaml", "minimum_tier: gvisor\ntcp: false\n");
  chmodSync(policy, 0o666);
  await assert.rejects(readPolicy(policy), invalid(/writable by nobody else/));
  chmodSync(policy, 0o644);
  const config = await load({ policy, env: { CAISSON_LISTEN_TCP: "127.0.0.1:1" } });
  assert.equal(config.policy?.minimum_tier, "gvisor");
  assert.equal(config.text("listen.tcp"), "off");
});

test("a policy with an unknown bound is refused", async () => {
  const parsed = await readConfigFile(file("bounds.yaml", "minimum_teir: gvisor\n"));
  assert.throws(() => checkPolicy(parsed!), invalid(/did you mean minimum_tier/));
});
