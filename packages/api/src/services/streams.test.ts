import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FileInfoSchema, type ProcessEvent, ProcessEventSchema, rules } from "@caisson/contract";
import { listing, readContent } from "./file-streams.ts";
import { collectOutput } from "./output.ts";

type Named = "stdout" | "stderr" | "exit" | "gap" | "started";
const event = (name: Named, value: object): ProcessEvent =>
  create(ProcessEventSchema, { event: { case: name, value } as never });
const output = (name: "stdout" | "stderr", bytes: number) => event(name, { data: new Uint8Array(bytes) });

async function* each<T>(items: T[]): AsyncGenerator<T> {
  yield* items;
}

const sizes = (parts: { stdout: { data: Uint8Array }; stderr: { data: Uint8Array } }[]) =>
  parts.reduce((sum, part) => sum + part.stdout.data.length + part.stderr.data.length, 0);

test("a small result is exactly one part, with both streams and the exit", async () => {
  const parts = await Array.fromAsync(
    collectOutput(
      each([
        event("started", {}),
        output("stdout", 3),
        output("stderr", 2),
        output("stdout", 4),
        event("exit", { code: 7 }),
      ]),
    ),
  );
  assert.equal(parts.length, 1);
  assert.equal(parts[0]?.stdout.data.length, 7);
  assert.equal(parts[0]?.exit?.code, 7);
  assert.equal(parts[0]?.exit?.truncated, false);
});

test("a large result comes in parts of about a mebibyte, and is cut at the limit to the byte", async () => {
  const limit = rules.sizes.exec_output_bytes;
  const piece = 700_000;
  const pieces = Array.from({ length: Math.ceil(limit / piece) + 3 }, () => output("stdout", piece));
  const parts = await Array.fromAsync(collectOutput(each([...pieces, event("exit", { code: 0 })])));
  assert.equal(sizes(parts), limit);
  assert.ok(parts.every((part) => part.stdout.data.length < 2_000_000));
  assert.deepEqual(
    parts.map((part) => part.exit?.truncated).filter((cut) => cut !== undefined),
    [true],
  );
});

test("output that was dropped before it was read counts as truncated", async () => {
  const parts = await Array.fromAsync(
    collectOutput(each([event("gap", { missingBytes: 5n }), event("exit", {})])),
  );
  assert.equal(parts[0]?.exit?.truncated, true);
});

test("a listing is cut at its limit and says so", async () => {
  const file = create(FileInfoSchema, { path: new Uint8Array(200) });
  const batches = Array.from({ length: 500 }, () => Array.from({ length: 100 }, () => file));
  const parts = await Array.fromAsync(listing(each(batches)));
  assert.equal(parts.at(-1)?.truncated, true);
  const total = parts.reduce((sum, part) => sum + part.files.length, 0);
  assert.ok(total * 264 <= rules.sizes.listing_bytes && total * 264 > rules.sizes.listing_bytes - 1000);
  assert.deepEqual(await Array.fromAsync(listing(each([]))), []);
});

test("a file beyond the limit is refused before it is read, and one that grows while it is", async () => {
  const call = { actor: "", requestId: "", signal: new AbortController().signal };
  const request = (fields: object) =>
    ({ sandboxId: "sb_1", path: "f", offset: 0n, length: 0n, ...fields }) as never;
  const limit = BigInt(rules.sizes.file_transfer_bytes);
  let closed = 0;
  const files = (size: bigint, chunks: number) =>
    ({
      read: async () => ({
        info: create(FileInfoSchema, { size }),
        content: (async function* () {
          try {
            for (let count = 0; count < chunks; count++) yield new Uint8Array(64 * 1024 * 1024);
          } finally {
            closed++;
          }
        })(),
      }),
    }) as never;
  const read = (size: bigint, chunks: number, fields = {}) =>
    Array.fromAsync(readContent(files(size, chunks), request(fields), call));
  await assert.rejects(read(limit + 1n, 0), { code: "TOO_LARGE" });
  await assert.rejects(read(0n, 0, { length: limit + 1n }), { code: "TOO_LARGE" });
  await assert.rejects(read(10n, 5), { code: "TOO_LARGE" });
  assert.equal(closed, 1);
  const parts = await read(limit + 5n, 1, { offset: 5n });
  assert.equal(parts[0]?.info?.size, limit + 5n);
});
