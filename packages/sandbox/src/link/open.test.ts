import assert from "node:assert/strict";
import { test } from "node:test";
import { openGuest } from "./open.ts";
import { FakeGuest } from "./testing/fake-guest.ts";
import { PatternSink } from "./testing/pattern-sink.ts";

test("seal and start go out together, and the exit comes after the output", async () => {
  await using fake = await new FakeGuest().listen();
  const guest = await openGuest(fake.connect);
  const sink = new PatternSink({ run: 1000 });
  const sealed = guest.seal({ hostname: "box" });
  const started = guest.start({ stream: guest.nextStream(), argv: ["pattern", "5000000", "1000"] }, sink);
  assert.equal((await sealed).holds[0]?.name, "seccomp");
  assert.deepEqual(await started, { pid: 101 });
  assert.equal((await sink.exit).code, 0);
  assert.equal(sink.position, 5_000_000);
  guest.close();
});
