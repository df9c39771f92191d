import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { npm } from "./npm.ts";
import { machine, rules, saying } from "./testing/machine.ts";

test("without any configuration it is what npm itself says", async () => {
  using host = machine({ "bin/npm": saying("npm warn something\nhttps://own.test/registry/") });
  assert.deepEqual(await npm(host), {
    name: "npm",
    hosts: [{ rule: "own.test:443", from: "npm config get registry", project: false, byTool: true }],
    env: {},
    files: [],
    notes: [],
  });
});

test("a program of the project's is not asked, however it came into the PATH", async () => {
  using host = machine({ "project/node_modules/.bin/npm": saying("https://evil.test/") });
  chmodSync(host.at("project/node_modules/.bin/npm"), 0o755);
  mkdirSync(host.at("links"));
  symlinkSync(host.at("project/node_modules/.bin/npm"), host.at("links/npm"));
  symlinkSync(host.at("project/node_modules/.bin"), host.at("bins"));
  for (const path of ["project/node_modules/.bin", "links", "bins"]) {
    const found = await npm({ ...host, env: { PATH: host.at(path) } });
    assert.deepEqual(rules(found), [], path);
  }
});

test("npm is asked where no project has a say", async () => {
  using host = machine({
    "bin/npm": "#!/bin/sh\n[ -e .npmrc ] || [ -e package.json ] || echo https://own.test/\n",
    "project/package.json": "{}",
  });
  assert.deepEqual(rules(await npm(host)), ["own.test:443"]);
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
  assert.deepEqual(found.files, [{ path: ".npmrc", content: "@b:registry=https://b.test/\n" }]);
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
  assert.deepEqual(rules(found), []);
  assert.deepEqual(found.notes, [
    `${host.at("home/.npmrc")} names no host that can be reached`,
    "nothing is configured, and there is no npm here to ask",
  ]);
});
