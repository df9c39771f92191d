import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { rules } from "@caisson/contract";
import { OpenSchema } from "@caisson/contract/terminal";
import { LauncherIo } from "../../../packages/daemon/src/terminal/launcher-io.ts";
import { Outbox } from "../../../packages/daemon/src/terminal/outbox.ts";

test("output as long as a sandbox likes reaches the terminal, in messages that it takes", async () => {
  const outbox = new Outbox();
  const io = new LauncherIo(create(OpenSchema), outbox, new AbortController().signal);
  // A directory of a sandbox's making, listed in one table.
  const written = "a name\n".repeat(1_500_000);
  void Promise.resolve(io.stdout.write(written)).then(() => outbox.end());
  const pieces: Uint8Array[] = [];
  for await (const { output } of outbox) if (output?.case === "stdout") pieces.push(output.value!);
  assert.ok(pieces.every((piece) => piece.length < rules.sizes.message_bytes));
  assert.equal(Buffer.concat(pieces).toString(), written);
});
