import assert from "node:assert/strict";
import { test } from "node:test";
import { cargo } from "./cargo.ts";
import { machine, rules } from "./testing/machine.ts";

test("without any configuration it is crates.io", async () => {
  using host = machine();
  assert.deepEqual(rules(await cargo(host)), ["index.crates.io:443", "static.crates.io:443"]);
});

test("a replaced source counts instead, also along a chain; further registries add to it", async () => {
  using host = machine({
    "home/.cargo/config.toml": `
[source.crates-io]
replace-with = "first"
[source.first]
replace-with = "mirror"
[source.mirror]
registry = "sparse+https://mirror.test/index/"
[registries.company]
index = "https://company.test:8443/git/index"
`,
  });
  assert.deepEqual(rules(await cargo(host)), ["mirror.test:443", "company.test:8443"]);
});

test("vendored sources need no network, and a circle ends", async () => {
  using vendored = machine({
    "project/.cargo/config.toml":
      '[source.crates-io]\nreplace-with = "v"\n[source.v]\ndirectory = "vendor"\n',
  });
  assert.deepEqual(rules(await cargo(vendored)), []);
  using circle = machine({
    "home/.cargo/config": '[source.crates-io]\nreplace-with = "a"\n[source.a]\nreplace-with = "crates-io"\n',
  });
  assert.equal((await cargo(circle)).notes.length, 1);
});

test("a file that is not TOML is noted, and variables count", async () => {
  using host = machine(
    { "project/.cargo/config.toml": "[[[" },
    { CARGO_REGISTRIES_MINE_INDEX: "sparse+https://m.test/" },
  );
  const found = await cargo(host);
  assert.deepEqual(rules(found), ["index.crates.io:443", "static.crates.io:443", "m.test:443"]);
  assert.deepEqual(found.env, { CARGO_REGISTRIES_MINE_INDEX: "sparse+https://m.test/" });
  assert.match(found.notes[0]!, /not valid TOML/);
});
