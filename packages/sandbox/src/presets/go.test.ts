import assert from "node:assert/strict";
import { test } from "node:test";
import { go } from "./go.ts";
import { machine, rules, saying } from "./testing/machine.ts";

test("without any configuration it is the proxy and checksum database that Go names", async () => {
  using host = machine({ "bin/go": saying("https://own.test,direct\nsum.test") });
  const found = await go(host);
  assert.deepEqual(rules(found), ["own.test:443", "sum.test:443"]);
  assert.deepEqual(found.env, {});
});

test("without Go nothing is opened, and that is said", async () => {
  using host = machine();
  const found = await go(host);
  assert.deepEqual(rules(found), []);
  assert.match(found.notes[0]!, /no go here/);
});

test("what `go env -w` has written beats Go's own file, and variables beat both", async () => {
  const files = {
    "root/usr/local/go/go.env": "GOPROXY=https://own.test,direct\nGOSUMDB=sum.test\n",
    "home/.config/go/env":
      "GOPROXY=https://u:p@mirror.test:8081/go|https://second.test\nGONOSUMDB=company.test/*\n",
  };
  using host = machine(files);
  const found = await go(host);
  assert.deepEqual(rules(found), ["mirror.test:8081", "second.test:443", "sum.test:443"]);
  assert.deepEqual(found.env, {
    GOPROXY: "https://mirror.test:8081/go|https://second.test/",
    GOSUMDB: "sum.test",
    GONOSUMDB: "company.test/*",
  });
  using variables = machine(files, { GOPROXY: "direct", GOSUMDB: "off" });
  const direct = await go(variables);
  assert.deepEqual(rules(direct), []);
  assert.match(direct.notes[0]!, /their own hosts/);
});

test("a checksum database may have a key and a URL of its own", async () => {
  using host = machine({}, { GOPROXY: "off", GOSUMDB: "sum.test+abc+key https://mirror.test/sumdb" });
  assert.deepEqual(rules(await go(host)), ["mirror.test:443"]);
});
