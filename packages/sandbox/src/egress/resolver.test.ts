import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { NameResolver } from "./resolver.ts";
import { startNameServer } from "./testing/name-server.ts";

const texts = async (resolver: NameResolver, name: string) =>
  (await resolver.resolve(name)).map(({ text }) => text);

test("answers are kept as long as they say, and asked for once at a time", async () => {
  const names = await startNameServer();
  const resolver = new NameResolver({ servers: [names.address], hostsFile: "/nonexistent" });
  names.set("kept.example", ["1.2.3.4", "2001:4860::1"], 60);
  names.set("fresh.example", ["1.2.3.4"], 0);
  assert.deepEqual(await texts(resolver, "kept.example"), ["1.2.3.4", "2001:4860::1"]);
  names.set("kept.example", ["5.6.7.8"], 60);
  assert.deepEqual(await texts(resolver, "kept.example"), ["1.2.3.4", "2001:4860::1"]);
  await Promise.all([texts(resolver, "fresh.example"), texts(resolver, "fresh.example")]);
  names.set("fresh.example", ["5.6.7.8"], 0);
  assert.deepEqual(await texts(resolver, "fresh.example"), ["5.6.7.8"]);
  assert.equal(names.questions.filter((question) => question === "A kept.example").length, 1);
  assert.equal(names.questions.filter((question) => question === "A fresh.example").length, 2);
  names.close();
});

test("a name that does not exist has no address; search domains are not tried", async () => {
  const names = await startNameServer();
  const resolver = new NameResolver({ servers: [names.address], hostsFile: "/nonexistent" });
  assert.deepEqual(await texts(resolver, "nowhere"), []);
  assert.deepEqual([...new Set(names.questions)].sort(), ["A nowhere", "AAAA nowhere"]);
  names.close();
});

test("the hosts file comes first, and localhost is never asked for", async () => {
  const names = await startNameServer();
  const dir = mkdtempSync(join(tmpdir(), "caisson-hosts-"));
  const hostsFile = join(dir, "hosts");
  writeFileSync(hostsFile, "# a comment\n10.9.8.7 build.corp Build # here\n::1 build.corp\nbad line\n");
  const resolver = new NameResolver({ servers: [names.address], hostsFile });
  assert.deepEqual(await texts(resolver, "build.corp"), ["10.9.8.7", "::1"]);
  assert.deepEqual(await texts(resolver, "build"), ["10.9.8.7"]);
  assert.deepEqual(await texts(resolver, "x.localhost"), ["127.0.0.1", "::1"]);
  assert.deepEqual(names.questions, []);
  rmSync(dir, { recursive: true });
  names.close();
});
