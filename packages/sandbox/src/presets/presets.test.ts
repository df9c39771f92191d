import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { parseAddress } from "../egress/addresses.ts";
import { presetNames, presetRules, resolvePresets } from "./index.ts";
import { machine } from "./testing/machine.ts";

test("on a machine with neither tools nor configuration nothing is opened", async () => {
  using host = machine();
  const resolved = await resolvePresets(presetNames, host);
  assert.deepEqual(
    resolved.map(({ name }) => name),
    [...presetNames],
  );
  assert.deepEqual(
    resolved.flatMap(({ hosts }) => hosts),
    [],
  );
});

test("a name that is no preset is an error that lists them", async () => {
  using host = machine();
  await assert.rejects(
    resolvePresets(["nmp"], host),
    (error) => error instanceof CaissonError && /npm, pip, cargo/.test(error.message),
  );
});

test("a mirror of one's own on a private address is named by it, what a project names is not", async () => {
  using host = machine({
    "home/.npmrc": "registry=http://localhost:4873/\n",
    "project/.npmrc": "@x:registry=http://localhost:9999/\n",
  });
  const { allow, env } = await presetRules(["npm"], host, async () => [parseAddress("127.0.0.1")!]);
  assert.ok(allow.includes("localhost:4873") && allow.includes("127.0.0.1:4873"), allow.join());
  assert.ok(allow.includes("localhost:9999") && !allow.includes("127.0.0.1:9999"));
  assert.equal(env.npm_config_registry, "http://localhost:4873/");
});

test("no address of the inside is opened because a project, or somebody's index, names it", async () => {
  for (const host of [
    "169.254.169.254",
    "127.0.0.1:8080",
    "[::1]:80",
    "0x7f000001",
    "2130706433",
    "[::ffff:10.0.0.1]",
    "127.1",
  ]) {
    using project = machine({
      "project/.npmrc": `registry=http://${host}/\n@x:registry=http://${host}/\n`,
      "project/requirements.txt": `--extra-index-url http://${host}/simple\n`,
      "project/.cargo/config.toml": `[registries.a]\nindex = "sparse+http://${host}/"\n`,
      "project/pom.xml": `<repository><id>a</id><url>http://${host}/m</url></repository>`,
      "project/.git/config": `[remote "a"]\n\turl = ssh://git@${host}/x\n[remote "b"]\n\turl = http://${host}/x\n`,
    });
    const found = await presetRules(presetNames, project, async () => []);
    assert.deepEqual(found.allow, [], host);
  }
  using index = machine({
    "home/.cargo/config.toml": '[registries.a]\nindex = "sparse+https://a.test/"\n',
    "home/.cargo/registry/index/a.test-0123456789abcdef/config.json": '{"dl":"http://169.254.169.254/x"}',
  });
  assert.deepEqual((await presetRules(["cargo"], index, async () => [])).allow, ["a.test:443"]);
});

test("the tools of this machine say by themselves where they go", async () => {
  using host = machine();
  const source = { ...host, env: { PATH: process.env.PATH ?? "" } };
  const resolved = await resolvePresets(["npm", "pip", "go", "maven"], source);
  for (const { name, hosts, notes } of resolved)
    assert.ok(
      hosts.some(({ byTool }) => byTool),
      `${name}: ${notes.join()}`,
    );
});
