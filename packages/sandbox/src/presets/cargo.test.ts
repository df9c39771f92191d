import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { cargo } from "./cargo.ts";
import { machine, rules, saying } from "./testing/machine.ts";

const said = "Caused by:\n  failed to download from `https://index.test/config.json`";
/** As cargo keeps it. */
const kept = (host: string, dl: string) => ({
  [`home/.cargo/registry/index/${host}-1949cf8c6b5b557f/config.json`]: JSON.stringify({ dl }),
});

test("without any configuration it is the index that cargo names, and where that has its crates", async () => {
  using host = machine({
    "bin/cargo": saying(said),
    ...kept("index.test", "https://static.test/crates/{crate}/{version}/download"),
  });
  assert.deepEqual(rules(await cargo(host)), ["index.test:443", "static.test:443"]);
});

test("an index that cargo has not asked yet is asked where its crates lie, unless only a project names it", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    response.end(JSON.stringify({ dl: "https://static.test/crates" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const index = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const files = { "config.toml": `[registries.a]\nindex = "sparse+http://${index}/index/"\n` };
  using mine = machine({ "home/.cargo/config.toml": files["config.toml"]! });
  using projects = machine({ "project/.cargo/config.toml": files["config.toml"]! });
  try {
    assert.deepEqual(rules(await cargo(mine)), [index, "static.test:443"]);
    assert.deepEqual(asked, ["/index/config.json"]);
    assert.deepEqual(rules(await cargo(projects)), []);
    assert.equal(asked.length, 1);
  } finally {
    server.close();
  }
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
index = "sparse+https://user:pass@company.test:8443/git/index/"
`,
    ...kept("mirror.test", "https://mirror.test/crates"),
    ...kept("company.test", "https://crates.company.test/"),
  });
  const found = await cargo(host);
  assert.deepEqual(rules(found), ["mirror.test:443", "company.test:8443", "crates.company.test:443"]);
  assert.equal(
    found.files[0]!.content,
    '[source.crates-io]\nreplace-with = "caisson-mirror"\n[source.caisson-mirror]\nregistry = "sparse+https://mirror.test/index/"\n' +
      '[registries."company"]\nindex = "sparse+https://company.test:8443/git/index/"\n',
  );
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
    { "project/.cargo/config.toml": "[[[", ...kept("m.test", "https://m.test/crates") },
    { CARGO_REGISTRIES_MINE_INDEX: "sparse+https://m.test/" },
  );
  const found = await cargo(host);
  assert.deepEqual(rules(found), ["m.test:443"]);
  assert.deepEqual(found.env, { CARGO_REGISTRIES_MINE_INDEX: "sparse+https://m.test/" });
  assert.match(found.notes[0]!, /not valid TOML/);
});
