// One suite for every driver that is usable here, each under every account.
import assert from "node:assert/strict";
import { after, describe } from "node:test";
import { type Box, type Client, connect, type SandboxSpec } from "@caisson/client";
import { type Account, accounts, startDaemon, type TestDaemon } from "../support/daemon.ts";

/** A driver under test, behind a daemon of its account. */
export interface Subject {
  driver: string;
  account: Account;
  daemon: TestDaemon;
  client: Client;
  /** Its commands are processes of a kernel of their own: the host sees the machine's process alone. */
  hasOwnKernel: boolean;
  /** A sandbox of this driver. */
  box(spec?: SandboxSpec): Promise<Box>;
}

/** Secrets that a daemon's environment may hold. None of them may be seen inside. */
export const canaries = { CANARY_TOKEN: "canary-7c1f", AWS_SECRET_ACCESS_KEY: "canary-90aa", LD_PRELOAD: "" };

/** To try some drivers alone: `CAISSON_TEST_DRIVERS=qemu node --test test/drivers/…`. */
const only = process.env.CAISSON_TEST_DRIVERS?.split(",");

/** Runs the suite for every usable driver under every account; there must be at least one for each. */
export async function conform(suite: (subject: Subject) => void): Promise<void> {
  const subjects: Subject[] = [];
  for (const account of accounts()) {
    const daemon = await startDaemon({ account, env: canaries });
    const client = await connect({ socket: daemon.socket });
    after(async () => {
      await client.close();
      await daemon[Symbol.asyncDispose]();
    });
    const { drivers } = await client.system.capabilities();
    const usable = drivers.filter(
      ({ name, usable }) => usable && (only === undefined || only.includes(name)),
    );
    assert.notEqual(usable.length, 0, `no driver is usable: ${JSON.stringify(drivers)}`);
    for (const { name: driver, tier } of usable) {
      const box = (spec: SandboxSpec = {}) => client.create({ ...spec, driver });
      subjects.push({ driver, account, daemon, client, box, hasOwnKernel: tier === "microvm" });
    }
  }
  for (const subject of subjects) {
    describe(`${subject.driver} as ${subject.account.name}`, { timeout: 240_000 }, () => suite(subject));
  }
}
