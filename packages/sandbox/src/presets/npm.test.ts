import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { test } from "node:test";
import { npm } from "./npm.ts";
import { machine, rules } from "./testing/machine.ts";

test("without any configuration it is npm's own registry", async () => {
  using host = machine();
  assert.deepEqual(await npm(host), {
    name: "npm",
    hosts: [{ rule: "registry.npmjs.org:443", from: "default", project: false }],
    env: {},
    notes: [],
  });
});

test("the project's file beats the user's, which beats the machine's; scopes add up", async () => {
  using host = machine({
    "root/etc/npmrc": "registry=http://machine.test/\n@a:registry=https://a.test/npm/\n",
    "home/.npmrc": "; mine\nregistry = https://user:pass@mirror.test:8443/npm/\n@b:registry=https://b.test\n",
    "project/.npmrc": "@a:registry=https://other-a.test/\n",
  });
  const found = await npm(host);
  assert.deepEqual(rules(found), ["mirror.test:8443", "other-a.test:443", "b.test:443"]);
  assert.deepEqual(found.env, { npm_config_registry: "https://mirror.test:8443/npm/" });
  assert.deepEqual(
    found.hosts.map(({ project }) => project),
    [false, true, false],
  );
});

test("variables win, in the file and beside it", async () => {
  using host = machine(
    { "home/.npmrc": `@c:registry=https://\${MIRROR}/x\n` },
    { MIRROR: "c.test", npm_config_registry: "http://localhost:4873" },
  );
  assert.deepEqual(rules(await npm(host)), ["localhost:4873", "c.test:443"]);
});

test("a project's file that is a link, or names nothing, counts for nothing", async () => {
  using host = machine({
    "home/secret": "registry=https://elsewhere.test\n",
    "home/.npmrc": "registry=nonsense\n",
  });
  symlinkSync(host.at("home/secret"), host.at("project/.npmrc"));
  const found = await npm(host);
  assert.deepEqual(rules(found), ["registry.npmjs.org:443"]);
  assert.equal(found.notes.length, 1);
});
