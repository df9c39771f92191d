import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import type { Guest, OutputSink, StartInit } from "../link/guest.ts";
import { rehearse } from "./rehearse.ts";

function guestThat(act: (sink: OutputSink) => void, lost: Promise<Error> = new Promise(() => {})) {
  const started: StartInit[] = [];
  const forgotten: number[] = [];
  const guest = {
    lost,
    nextStream: () => 3,
    async start(start: StartInit, sink: OutputSink) {
      started.push(start);
      act(sink);
      return { pid: 4 };
    },
    forget: (stream: number) => void forgotten.push(stream),
  };
  return { guest: guest as unknown as Guest, started, forgotten };
}

test("what is rehearsed counts as no command, and is forgotten", async () => {
  const { guest, started, forgotten } = guestThat((sink) => {
    void sink.write(1, Buffer.from("words"));
    assert.equal(sink.position, 5);
    sink.exited({} as Parameters<OutputSink["exited"]>[0]);
  });
  await rehearse(guest);
  assert.deepEqual([started[0]!.stream, started[0]!.rehearsal, forgotten], [3, true, [3]]);
});

test("a host without a shell is no reason to fail", async () => {
  const { guest, forgotten } = guestThat(() => {
    throw new CaissonError("COMMAND_NOT_FOUND", "there is no program /bin/sh");
  });
  await rehearse(guest);
  assert.deepEqual(forgotten, []);
});

test("a guest that is lost meanwhile is not waited for", async () => {
  const { guest } = guestThat(() => {}, Promise.resolve(new Error("gone")));
  await rehearse(guest);
});
