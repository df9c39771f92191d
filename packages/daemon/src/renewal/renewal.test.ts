import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ProcessService } from "@caisson/contract";
import { Renewal } from "./renewal.ts";
import { Sources } from "./sources.ts";

function setUp() {
  const dir = mkdtempSync(join(tmpdir(), "caisson-sources-"));
  const packages = join(dir, "packages");
  for (const name of ["a/src/deep", "b/src", "a/node_modules/x"])
    mkdirSync(join(packages, name), { recursive: true });
  for (const name of ["a/src/deep/one.ts", "a/src/one.test.ts", "b/src/two.ts", "a/node_modules/x/x.ts"]) {
    writeFileSync(join(packages, name), "1");
  }
  mkdirSync(join(dir, "bin"));
  writeFileSync(join(dir, "bin/guest"), "1");
  const write = (name: string, text: string) => writeFileSync(join(packages, name), text);
  return { dir, packages, write, [Symbol.dispose]: () => rmSync(dir, { recursive: true }) };
}

async function open(setup: { dir: string; packages: string }, since = Date.now() + 1000) {
  const sources = new Sources([setup.packages, join(setup.dir, "bin/guest")], since);
  await sources.begin();
  return { sources, [Symbol.dispose]: () => sources.close() };
}

/** The kernel tells about a change a moment later. */
async function told(sources: Sources): Promise<void> {
  const { onTouched } = sources;
  await new Promise<void>((resolve) => {
    sources.onTouched = resolve;
  });
  sources.onTouched = onTouched;
}

const fit = async () => undefined;

const changes: [string, (setup: ReturnType<typeof setUp>) => void][] = [
  ["an edited file", ({ write }) => write("a/src/deep/one.ts", "22")],
  ["a new file", ({ write }) => write("b/src/three.ts", "1")],
  ["a removed file", ({ packages }) => unlinkSync(join(packages, "b/src/two.ts"))],
  [
    "a renamed directory",
    ({ packages }) => renameSync(join(packages, "a/src/deep"), join(packages, "a/src/deeper")),
  ],
  [
    "another guest",
    ({ dir }) => {
      writeFileSync(join(dir, "bin/new"), "22");
      renameSync(join(dir, "bin/new"), join(dir, "bin/guest"));
    },
  ],
];
for (const [what, change] of changes) {
  test(`${what} makes the daemon old`, async () => {
    using setup = setUp();
    using opened = await open(setup);
    const { sources } = opened;
    assert.equal(await sources.changed(), false);
    const heard = told(sources);
    change(setup);
    await heard;
    assert.equal(await sources.changed(), true);
    assert.equal(sources.knownToHaveChanged, true);
  });
}

test("tests and other packages do not", async () => {
  using setup = setUp();
  using opened = await open(setup);
  const heard = told(opened.sources);
  setup.write("a/node_modules/x/x.ts", "22");
  setup.write("a/src/one.test.ts", "22");
  await heard;
  assert.equal(await opened.sources.changed(), false);
});

test("what was written while the daemon was loading makes it old; a time to come does not", async () => {
  using setup = setUp();
  using before = await open(setup, Date.now() - 60_000);
  assert.equal(before.sources.knownToHaveChanged, true);
});

test("a renewal waits for what cannot be repeated", async (t) => {
  using setup = setUp();
  using opened = await open(setup);
  const { sources } = opened;
  let renewed = 0;
  const renewal = new Renewal({ sources, enabled: true, renew: () => void renewed++, rehearse: fit });
  const { exec, listProcesses } = ProcessService.method;
  renewal.beginCall(listProcesses);
  assert.equal(renewal.working, 0);
  const done = renewal.beginCall(exec);
  assert.equal(renewal.working, 1);
  const heard = told(sources);
  setup.write("b/src/two.ts", "22");
  await heard;
  assert.equal(await renewal.due(), true);
  assert.match(renewal.trouble ?? "", /older than its sources/);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  sources.onTouched();
  t.mock.timers.tick(10_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(renewed, 0);
  done();
  done();
  assert.equal(renewal.working, 0);
  t.mock.timers.tick(10_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(renewed, 1);
  renewal.close();
});

test("a caller who is to replace the daemon and the daemon itself do not both do it", async (t) => {
  using setup = setUp();
  using opened = await open(setup);
  const { sources } = opened;
  let renewed = 0;
  const rehearsed = Promise.withResolvers<undefined>();
  const rehearse = () => rehearsed.promise;
  const renewal = new Renewal({ sources, enabled: true, renew: () => void renewed++, rehearse });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const heard = told(sources);
  setup.write("b/src/two.ts", "22");
  await heard;
  sources.onTouched();
  // By itself it has begun to try the new sources when a caller comes who waits for the same.
  t.mock.timers.tick(10_000);
  const due = renewal.due();
  rehearsed.resolve(undefined);
  assert.equal(await due, true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(renewed, 0);
  // One who was told and did nothing is not waited for.
  t.mock.timers.tick(10_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(renewed, 1);
  renewal.close();
});

test("where it is switched off, an old daemon only says so", async () => {
  using setup = setUp();
  using opened = await open(setup, Date.now() - 60_000);
  const renewal = new Renewal({
    sources: opened.sources,
    enabled: false,
    renew: () => assert.fail("renewed"),
    rehearse: () => assert.fail("rehearsed"),
  });
  await renewal.watch();
  assert.equal(await renewal.due(), false);
  assert.match(renewal.trouble ?? "", /caisson daemon restart/);
});

test("a daemon stays while none can be made of the new sources, and tries again when they change", async () => {
  using setup = setUp();
  using opened = await open(setup);
  const { sources } = opened;
  const troubles = ["SyntaxError: x", undefined];
  let rehearsals = 0;
  const renewal = new Renewal({
    sources,
    enabled: true,
    renew: () => {},
    rehearse: async () => troubles[rehearsals++],
  });
  const edit = async (text: string) => {
    const heard = told(sources);
    setup.write("b/src/two.ts", text);
    await heard;
    // The kernel tells of one write more than once.
    await new Promise((resolve) => setTimeout(resolve, 50));
  };
  await edit("22");
  assert.deepEqual([await renewal.due(), await renewal.due(), rehearsals], [false, false, 1]);
  assert.match(renewal.trouble ?? "", /no daemon can be made of those: SyntaxError: x/);
  await edit("333");
  assert.deepEqual([await renewal.due(), rehearsals], [true, 2]);
  renewal.close();
});
