// Copies of a machine whose wall was closed before anybody asked for it: as tight as one that was closed for its caller, and
// with nothing in common that must not be.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type Box, type Client, connect } from "@caisson/client";
import { accounts, startDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

const spec = { driver: "qemu" };

/** One line each: what two copies must share with the sandbox that was saved, and what they must not. */
const look = [
  "stat -c %y /etc/passwd",
  "cat /etc/hostname",
  "cat /etc/machine-id",
  "head -c 16 /dev/urandom | od -An -tx1",
  "cat /proc/sys/kernel/random/uuid",
  "hostname",
  "echo $CAISSON_SANDBOX",
  "caisson-ctl info --json | tr -d '\\n' | grep -o 'sb_[0-9a-z]*' | head -1",
  "tail -n +1 /etc/hosts | head -1",
  "date +%s",
  "find /home /tmp /var/tmp /dev/shm -type f | wc -l",
  "cat /proc/sys/vm/compaction_proactiveness",
  "grep -c . /proc/self/mountinfo; touch /etc/hostname 2>&1 | grep -o 'Read-only.*'",
].join("; ");

interface Seen {
  box: Box;
  view: string[];
}

async function seen(box: Box): Promise<string[]> {
  const { stdout, stderr } = await box.run(["sh", "-c", look]);
  const lines = stdout.text.trimEnd().split("\n");
  assert.equal(lines.length, 14, stdout.text + stderr.text);
  return lines;
}

/** After it has lived for a while, however busy the host was meanwhile. */
async function hasTheTime(box: Box): Promise<void> {
  const before = Date.now();
  const { stdout } = await box.run(["date", "+%s%3N"]);
  const told = Number(stdout.text);
  assert.ok(before - 2000 <= told && told <= Date.now() + 2000, `it is ${told}, and was ${before} outside`);
}

/** Once somebody had to wait twice, the next are copies: their files are as old as each other's. */
async function twins(client: Client): Promise<[Seen, Seen]> {
  let before: Seen | undefined;
  for (;;) {
    const box = await client.create(spec);
    const view = await seen(box);
    if (before?.view[0] === view[0]) return [before!, { box, view }];
    await before?.box.delete();
    before = { box, view };
  }
}

describe("machines that were closed ahead", { concurrency: 2, timeout: 240_000 }, () => {
  for (const account of accounts()) {
    it(`are sandboxes of their own, as ${account.name}`, async () => {
      await using daemon = await startDaemon({
        account,
        env: { CAISSON_POOL_MIN: "0", CAISSON_POOL_MAX: "0" },
      });
      await using client = await connect({ socket: daemon.socket });
      await using cold = await client.create(spec);
      const usual = await seen(cold);
      const [one, other] = await twins(client);
      await using boxes = new AsyncDisposableStack();
      for (const { box } of [one, other]) boxes.use(box);
      const views = [one.view, other.view];
      assert.notEqual(views[0]![0], usual[0], "they were closed for nobody in particular");
      for (const { box, view } of [one, other]) {
        const name = box.id.replaceAll("_", "-");
        assert.deepEqual([view[1], view[5], view[6], view[7]], [name, name, box.id, box.id]);
        assert.equal(view[8], `127.0.0.1 localhost ${name}`);
        assert.match(view[2]!, /^[0-9a-f]{32}$/);
        assert.ok(Math.abs(Number(view[9]) * 1000 - Date.now()) < 60_000, "the clock is right");
        assert.deepEqual(view.slice(10), usual.slice(10), "files, mounts and what may not be written");
      }
      assert.equal(usual[11], "0", "no kernel tidies memory that it shares with its template");
      for (const line of [1, 2, 3, 4])
        assert.equal(new Set([usual, ...views].map((view) => view[line])).size, 3, `line ${line}`);
      const [usualReport, ...reports] = [cold, one.box, other.box].map(({ info }) => info.enforced);
      for (const report of reports) assert.deepEqual(report, usualReport);
      await hasTheTime(cold);
      const saved = join(daemon.home, "closed-machines");
      assert.ok(existsSync(saved));
      await daemon.crash();
      await daemon.restart();
      await eventually(
        () => existsSync(saved),
        (isThere) => !isThere,
      );
    });
  }
});
