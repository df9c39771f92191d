import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { BubblewrapDriver } from "../driver/bubblewrap/driver.ts";
import { Bench } from "../keeper/testing.ts";
import { newSandboxId } from "../pool/sandbox-id.ts";
import type { Guest } from "./guest.ts";
import { openGuest } from "./open.ts";
import { CollectingSink } from "./testing/collecting-sink.ts";
import { cutAfter } from "./testing/cut-after.ts";
import { Random } from "./testing/random.ts";

const never = new AbortController().signal;
const self = { name: "whoever runs the tests", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

/** A sealed sandbox of the real guest, whose link `wrap` may spoil. */
async function withGuest(
  wrap: (socket: Duplex) => Duplex,
  body: (guest: Guest) => Promise<void>,
): Promise<void> {
  await using bench = new Bench(self);
  const driver = new BubblewrapDriver({ keeper: bench.keeper, guest: bench.guest });
  const sandboxId = newSandboxId();
  const dir = `${bench.dir}/${sandboxId}`;
  mkdirSync(dir, { mode: 0o700 });
  const launched = await driver.launch({ sandboxId, image: "host", dir, cgroups: [] });
  try {
    const guest = await openGuest(async () => wrap(await launched.connect()), {
      ended: launched.ended,
      reconnectDelaysMs: new Array(500).fill(0),
    });
    const lost = guest.lost.then((error) => {
      throw error;
    });
    const env = ["PATH=/usr/bin:/bin"];
    const home = { user: "agent", home: "/home/agent", workdir: "/home/agent" };
    const work = async () => {
      await guest.seal({ hostname: "box", uid: 1000, gid: 1000, ...home, env });
      await body(guest);
    };
    await Promise.race([work(), lost]);
    guest.close();
  } finally {
    await launched.kill();
  }
}

function start(guest: Guest, argv: string[], options: { stdin?: boolean } = {}) {
  const sink = new CollectingSink();
  const stream = guest.nextStream();
  return { sink, stream, started: guest.start({ stream, argv, cwd: "/", ...options }, sink) };
}

/** Cuts the first connections, each beyond what sealing says: a seal that is cut off is not repeated. */
function cutting(seed: number, cuts: number): (socket: Duplex) => Duplex {
  const random = new Random(seed);
  let connections = 0;
  return (socket) => {
    connections += 1;
    return connections <= cuts ? cutAfter(socket, random.int(5000, 700_000)) : socket;
  };
}

const numbers = Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join("");

test("the real guest's output and input arrive whole, wherever the link is cut", async () => {
  for (const seed of [1, 2, 3]) {
    await withGuest(cutting(seed, 12), async (guest) => {
      const counting = start(guest, ["/bin/sh", "-c", "seq 300000; seq 1000 >&2; exit 5"]);
      const echoing = start(guest, ["/bin/cat"], { stdin: true });
      const input = new Random(seed).bytes(2_500_000);
      await echoing.started;
      const written = Promise.all(
        [0, 1, 2, 3, 4].map((i) =>
          guest.writeStdin(echoing.stream, input.subarray(i * 500_000, (i + 1) * 500_000)),
        ),
      );
      await written;
      guest.endStdin(echoing.stream);
      assert.equal((await counting.sink.exit).code, 5, `seed ${seed}`);
      assert.equal(counting.sink.bytes(1).toString(), numbers, `seed ${seed}`);
      assert.equal(counting.sink.bytes(2).length, 3893, `seed ${seed}`);
      assert.equal((await echoing.sink.exit).code, 0, `seed ${seed}`);
      assert.ok(echoing.sink.bytes(1).equals(Buffer.from(input)), `seed ${seed}`);
      guest.forget(counting.stream);
      guest.forget(echoing.stream);
    });
  }
});

test("the real guest speaks the link as the daemon does", async () => {
  await withGuest(
    (socket) => socket,
    async (guest) => {
      await assert.rejects(start(guest, ["/nowhere"]).started, { code: "COMMAND_NOT_FOUND" });
      const sleeping = start(guest, ["/bin/sleep", "1000"]);
      assert.ok((await sleeping.started).pid > 1);
      assert.equal(await guest.ping(), 1);
      await guest.signal(sleeping.stream, 15, true);
      assert.equal((await sleeping.sink.exit).signal, 15);
      await assert.rejects(guest.writeStdin(sleeping.stream, Uint8Array.of(1)), { code: "PROCESS_ENDED" });
      await assert.rejects(guest.resize(sleeping.stream, 80, 24), { code: "NO_TERMINAL" });
      assert.ok((await guest.usage()).cpuUs >= 0n);

      const content = new Random(9).bytes(3_000_000);
      const options = { path: "/home/agent/a/b", mode: 0o600, parents: true, ifMatch: "", maxBytes: 0n };
      async function* pieces() {
        for (let at = 0; at < content.length; at += 99_999) yield content.subarray(at, at + 99_999);
      }
      assert.equal((await guest.files.write(options, pieces(), never)).size, 3_000_000n);
      const parts: Uint8Array[] = [];
      for await (const piece of (await guest.files.read("/home/agent/a/b", 0n, 0n, never)).content)
        parts.push(piece);
      assert.ok(Buffer.concat(parts).equals(Buffer.from(content)));
      const names: string[] = [];
      for await (const { entries } of guest.files.list("/home/agent", true, never)) {
        names.push(...entries.map(({ path }) => Buffer.from(path).toString()));
      }
      assert.ok(names.some((name) => name.endsWith("a/b")));
      const archive: Uint8Array[] = [];
      for await (const piece of await guest.files.pack("/home/agent/a", never)) archive.push(piece);
      async function* tar() {
        yield* archive;
      }
      const limits = { maxBytes: 10_000_000n, maxFiles: 10n };
      await guest.files.mkdir("/home/agent/c", false, 0o755, never);
      assert.equal((await guest.files.unpack("/home/agent/c", limits, tar(), never)).bytes, 3_000_000n);
      await guest.files.move("/home/agent/c", "/home/agent/d", false, never);
      await guest.files.remove("/home/agent/d", true, never);
      await assert.rejects(guest.files.stat("/nowhere", true, never), { code: "PATH_NOT_FOUND" });
    },
  );
});
