// One suite for every driver that is usable here, each under every account.
import assert from "node:assert/strict";
import { after, describe } from "node:test";
import { type Box, type Client, connect, type SandboxSpec } from "@caisson/client";
import { type Account, accounts, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { canStartEngine, type Engine, sharedEngine } from "../support/engine.ts";
import { startPodman } from "../support/podman.ts";
import { startRootlessDocker } from "../support/rootless-docker.ts";

/** A driver under test, behind a daemon of its account. */
export interface Subject {
  driver: string;
  account: Account;
  daemon: TestDaemon;
  client: Client;
  /** Its commands are processes of a kernel of their own: the host sees the machine's process alone. */
  hasOwnKernel: boolean;
  /** The engine that daemons of this subject are given, if there is one. */
  engine: Engine | undefined;
  /** What this driver is known to lack, here: names of mechanisms, and what tests look at from outside. */
  gaps: ReadonlySet<string>;
  /** A sandbox of this driver. */
  box(spec?: SandboxSpec): Promise<Box>;
}

/** docs/tiers.md says what each of these means for people. */
const knownGaps: Record<string, string[]> = {
  runsc: ["landlock", "commands.tree", "limit.pids", "host processes", "memory siblings", "terminal signals"],
};

/** Secrets that a daemon's environment may hold. None of them may be seen inside. */
export const canaries = { CANARY_TOKEN: "canary-7c1f", AWS_SECRET_ACCESS_KEY: "canary-90aa", LD_PRELOAD: "" };

/** To try some drivers alone: `CAISSON_TEST_DRIVERS=qemu node --test test/drivers/…`. */
const only = process.env.CAISSON_TEST_DRIVERS?.split(",");
const needsEngine = only === undefined || only.includes("docker");

/** `CAISSON_TEST_ENGINE=podman` or `rootless-docker`: the driver `docker` over such an engine of each account's own. */
const startsOwn = { podman: startPodman, "rootless-docker": startRootlessDocker }[
  process.env.CAISSON_TEST_ENGINE ?? ""
];

/**
 * Runs the suite for every usable driver under every account; there must be at least one for each. `env`: further variables of
 * their daemons.
 */
export async function conform(
  suite: (subject: Subject) => void,
  env: Record<string, string> = {},
): Promise<void> {
  const subjects: Subject[] = [];
  // Ends in the opposite order, all of it, whatever fails.
  const used = new AsyncDisposableStack();
  after(() => used.disposeAsync());
  const shared = used.use(needsEngine && canStartEngine() && !startsOwn ? await sharedEngine() : undefined);
  for (const account of accounts()) {
    // It has no such mode.
    if (startsOwn === startRootlessDocker && account.uid === 0) continue;
    const engine = shared ?? used.use(await startsOwn?.(account));
    const daemon = used.use(await startDaemon({ account, env: { ...canaries, ...engine?.env, ...env } }));
    const client = used.use(await connect({ socket: daemon.socket }));
    const { drivers } = await client.system.capabilities();
    const usable = drivers.filter(
      ({ name, usable }) => usable && (only === undefined || only.includes(name)),
    );
    assert.notEqual(usable.length, 0, `no driver is usable: ${JSON.stringify(drivers)}`);
    // Skipping what the reference platform has would be a failure.
    for (const name of engine ? ["bubblewrap", "docker", "runsc"] : ["bubblewrap"]) {
      const found = drivers.find((driver) => driver.name === name);
      assert.ok(found?.usable, `${name} must be usable for ${account.name}: ${found?.reason}`);
    }
    for (const { name: driver, tier } of usable) {
      const box = (spec: SandboxSpec = {}) => client.create({ ...spec, driver });
      const gaps = new Set(knownGaps[driver]);
      subjects.push({
        driver,
        account,
        daemon,
        client,
        engine,
        gaps,
        box,
        hasOwnKernel: tier !== "container",
      });
    }
  }
  // Accounts have daemons of their own, so that they need not wait for each other.
  const groups = Map.groupBy(subjects, ({ account }) => account);
  describe("drivers", { concurrency: groups.size }, () => {
    for (const [account, members] of groups) {
      describe(`of ${account.name}`, { concurrency: 1 }, () => {
        for (const subject of members)
          describe(`${subject.driver} as ${account.name}`, { timeout: 240_000 }, () => suite(subject));
      });
    }
  });
}
