import assert from "node:assert/strict";
import { test } from "node:test";
import { pip } from "./pip.ts";
import { machine, rules, saying } from "./testing/machine.ts";

const own = { "bin/python3": saying("https://own.test/simple\nhttps://files.test") };

test("without any configuration it is pip's own index and where that keeps its files", async () => {
  using host = machine(own);
  const found = await pip(host);
  assert.deepEqual(rules(found), ["own.test:443", "files.test:443"]);
  assert.deepEqual(found.env, {});
});

test("who names pip's own index gets its files too", async () => {
  using host = machine(own, { PIP_INDEX_URL: "https://own.test/simple" });
  assert.deepEqual(rules(await pip(host)), ["own.test:443", "files.test:443"]);
});

test("without pip, and without a configuration, nothing is opened and that is said", async () => {
  using host = machine({ "bin/python3": "#!/bin/sh\necho no module >&2; exit 1\n" });
  const found = await pip(host);
  assert.deepEqual(rules(found), []);
  assert.match(found.notes[0]!, /no pip here/);
});

test("an index of one's own replaces it, extra ones add to it, credentials stay outside", async () => {
  using host = machine({
    "root/etc/pip.conf": "[global]\nindex-url = https://machine.test/simple\n",
    "home/.config/pip/pip.conf":
      "[global]\nindex-url = https://user:pass@mirror.test/simple\nextra-index-url =\n    https://one.test/simple\n    https://k:s@two.test:8443/simple\nfind-links = /opt/wheels\n",
  });
  const found = await pip(host);
  assert.deepEqual(rules(found), ["mirror.test:443", "one.test:443", "two.test:8443"]);
  assert.equal(found.env.PIP_INDEX_URL, "https://mirror.test/simple");
  assert.equal(found.env.PIP_EXTRA_INDEX_URL, "https://one.test/simple https://two.test:8443/simple");
});

test("variables beat files, and requirement files of the project add to both", async () => {
  using host = machine(
    {
      "home/.pip/pip.conf": "[global]\nindex-url = https://file.test/simple\n",
      "project/requirements.txt": "--extra-index-url https://project.test/simple\nrequests==2\n",
    },
    { PIP_INDEX_URL: "http://variable.test:3141/root" },
  );
  const found = await pip(host);
  assert.deepEqual(rules(found), ["variable.test:3141", "project.test:443"]);
  assert.equal(found.hosts[1]!.project, true);
});
