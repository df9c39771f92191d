// Every probe in every tier but the default one, which has suites of its own: one sandbox for all of them, as root and
// as an ordinary user. `CAISSON_WRITE_TIERS=1` writes what came of it to docs/tiers.md.
import assert from "node:assert/strict";
import { chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import {
  type Account,
  accounts,
  root,
  startDaemon,
  type TestDaemon,
  temporaryDirectory,
} from "../../support/daemon.ts";
import { sharedEngine, whyNoEngine } from "../../support/engine.ts";
import { denied, type Fixture, layOut } from "./fixture.ts";
import { judge, manifest } from "./manifest.ts";
import { tierTable } from "./table.ts";

/** Where each has the guest's program. */
const guests: Record<string, string> = {
  docker: "/run/caisson/guest",
  runsc: "/.caisson-guest",
  qemu: "/run/caisson/guest",
};
const drivers = Object.keys(guests);
const held = new Set<string>();

/** A daemon whose profile `probe` denies what the probes look for. */
async function startFor(account: Account, fixture: Fixture, env: Record<string, string>) {
  const home = temporaryDirectory(account);
  const profile = {
    extends: "moderate",
    deny_read: denied.map((name) => join(fixture.workspace, name)),
    limits: { pids: 256, open_files: 1024, disk_bytes: 64 << 20 },
  };
  // JSON is YAML.
  const config = join(home, "config.yaml");
  writeFileSync(config, JSON.stringify({ sandbox: { toolchains: "off" }, profiles: { probe: profile } }));
  chownSync(config, account.uid, account.gid);
  return startDaemon({ account, home, env: { ...env, CAISSON_POOL_MAX: "0", CAISSON_POOL_MIN: "0" } });
}

async function probeAll(client: Client, driver: string, fixture: Fixture): Promise<string[]> {
  const wrong: string[] = [];
  await using box = await client.create({
    driver,
    profile: "probe",
    workspace: { dir: fixture.workspace, mode: driver === "docker" ? "overlay" : "copy" },
    env: {
      CANARY: fixture.canary,
      ABSTRACT: fixture.abstractSocket,
      GUEST: guests[driver]!,
      MOST_FILES: "20000",
    },
  });
  for (const program of manifest.probes) {
    const { code, stdout, stderr } = await box.run([`./programs/${program}`], { timeout: 120_000 });
    assert.equal(code, 0, `${program}: ${stderr.text}`);
    for (const { holds, case: name, title, got, expected } of judge(program, stdout.text, {
      driver,
      syscalls: [],
      has: ["deny_read", "guest_path"],
    }))
      if (!holds) wrong.push(`${name} (${title}): ${got}, not ${expected}`);
  }
  // What was done inside does not reach the host, not even when somebody looks at it.
  const changed = (await box.workspace.diff()).map(({ path }) => path);
  wrong.push(
    ...changed.filter((path) => denied.some((name) => path === name || path.startsWith(`${name}/`))),
  );
  return wrong;
}

const skip = whyNoEngine();
const engine = skip ? undefined : await sharedEngine();
after(() => engine?.[Symbol.asyncDispose]());

// Accounts have daemons of their own, so that they need not wait for each other.
describe("attempts", { skip, timeout: 280_000, concurrency: accounts().length }, () => {
  for (const account of accounts()) {
    describe(`as ${account.name}`, { concurrency: 1 }, () => {
      let fixture: Fixture;
      let daemon: TestDaemon;
      let client: Client;
      before(async () => {
        fixture = await layOut(account);
        daemon = await startFor(account, fixture, engine!.env);
        client = await connect({ socket: daemon.socket });
      });
      after(async () => {
        await client?.close();
        await daemon?.[Symbol.asyncDispose]();
        await fixture?.[Symbol.asyncDispose]();
      });
      for (const driver of drivers) {
        it(`${driver}: every attempt ends as the manifest and its exceptions say, and the host is unchanged`, async () => {
          assert.deepEqual(await probeAll(client, driver, fixture), []);
          assert.deepEqual(fixture.damage(), []);
          held.add(`${driver} as ${account.name}`);
        });
      }
    });
  }
});

describe("docs/tiers.md", { skip }, () => {
  it("says what came of it", () => {
    assert.equal(held.size, drivers.length * accounts().length, "what was not tried is not written");
    const page = join(root, "docs/tiers.md");
    const [begin, end] = ["<!-- written by test/security/wall/tiers.test.ts -->", "<!-- end of attempts -->"];
    const [head, rest] = readFileSync(page, "utf8").split(begin) as [string, string];
    const [written, tail] = rest.split(end) as [string, string];
    const text = tierTable(["bubblewrap", ...drivers]);
    if (process.env.CAISSON_WRITE_TIERS) writeFileSync(page, `${head}${begin}\n\n${text}\n\n${end}${tail}`);
    else assert.equal(written.trim(), text, "write it anew");
  });
});
