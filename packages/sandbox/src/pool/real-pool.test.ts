import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { test } from "node:test";
import { BubblewrapDriver } from "../driver/bubblewrap/driver.ts";
import { Bench, eventually } from "../keeper/testing.ts";
import { CollectingSink } from "../link/testing/collecting-sink.ts";
import { Pool, type Taken } from "./pool.ts";

const self = { name: "whoever runs the tests", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const kind = { driver: "bubblewrap", image: "host" };

/** What a command sees of the sandbox it is in, without what differs from one launch to the next. */
const lookAround = `
  cut -d' ' -f4- /proc/self/mountinfo | sed 's/ shared:[0-9]*//; s/ master:[0-9]*//' | sort
  grep -E '^(Uid|Gid|Groups|NoNewPrivs|Seccomp|Cap)' /proc/self/status
  stat -c '%A %u %g %t:%T %N' /* /dev/* /home/* /etc/*
  ls /proc/self/fd | wc -l
  env | sort; id; hostname; pwd; ulimit -a
`;

async function seal({ guest }: Taken): Promise<{ holds: unknown; inside: string }> {
  const user = { uid: 1000, gid: 1000, user: "agent", home: "/home/agent", workdir: "/home/agent" };
  const sealed = guest.seal({ hostname: "box", ...user, env: ["PATH=/usr/bin:/bin"] });
  const sink = new CollectingSink();
  await guest.start({ stream: guest.nextStream(), argv: ["/bin/sh", "-c", lookAround] }, sink);
  assert.equal((await sink.exit).code, 0, sink.bytes(2).toString());
  return { holds: (await sealed).holds, inside: sink.bytes(1).toString() };
}

test("a sandbox that waited is the same as one made for its taker, and what waits goes with the pool", async () => {
  await using bench = new Bench(self);
  const options = {
    drivers: [new BubblewrapDriver({ keeper: bench.keeper, guest: bench.guest })],
    prepare: async (id: string) => {
      await mkdir(`${bench.dir}/${id}`, { mode: 0o700 });
      return { dir: `${bench.dir}/${id}`, cgroups: [] };
    },
    onLaunched() {},
    onGone() {},
  };
  const pool = new Pool(options);
  const coldPool = new Pool({ ...options, max: 0 });
  pool.prewarm(kind);
  await eventually("two sandboxes wait", () => pool.waiting === 2);
  const [warm, cold] = await Promise.all([pool.take(kind), coldPool.take(kind)]);
  try {
    assert.deepEqual([warm.warm, cold.warm], [true, false]);
    const [warmReport, coldReport] = [await seal(warm), await seal(cold)];
    assert.deepEqual(warmReport.holds, coldReport.holds);
    assert.equal(anonymous(warmReport.inside, warm), anonymous(coldReport.inside, cold));
    await eventually("the taken one is replaced", () => pool.waiting === 2);
  } finally {
    await pool.close();
    for (const { guest, launched } of [warm, cold]) {
      guest.close();
      await launched.kill();
    }
  }
});

/** Without the one thing that must differ: who the sandbox is on the host. */
function anonymous(inside: string, { id, launched }: Taken): string {
  return inside.replaceAll(id, "ID").replaceAll(String(launched.record.uid), "UID");
}
