import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import * as contract from "../index.ts";
import * as terminal from "../terminal.ts";
import { decodeMessage, encodeMessage, encodeParts, keepEncoding, shareDecoded } from "./index.ts";

const schemas: DescMessage[] = ([...Object.values(contract), ...Object.values(terminal)] as unknown[]).filter(
  (value): value is DescMessage =>
    typeof value === "object" && value !== null && (value as { kind?: string }).kind === "message",
);

let state = 5;
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};
const below = (bound: number) => Math.floor(random() * bound);
const pick = <T>(values: readonly T[]): T => values[below(values.length)]!;

function scalar(type: ScalarType): unknown {
  switch (type) {
    case ScalarType.STRING:
      return pick(["", "a", "grüße 🦀", "x".repeat(40), "é".repeat(300), "\0"]);
    case ScalarType.BYTES:
      return pick([new Uint8Array(0), Uint8Array.from([0, 255]), new Uint8Array(20_000).fill(7)]);
    case ScalarType.BOOL:
      return random() < 0.5;
    case ScalarType.INT32:
      return pick([0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]);
    case ScalarType.UINT32:
      return pick([0, 1, 127, 128, 2 ** 32 - 1]);
    case ScalarType.INT64:
      return pick([0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]);
    case ScalarType.UINT64:
      return pick([0n, 127n, 2n ** 53n, 2n ** 64n - 1n]);
    default:
      return pick([0, -0, 1.5, -1e300, Number.POSITIVE_INFINITY]);
  }
}

function value(field: DescField, depth: number): unknown {
  if (field.message?.typeName === "google.protobuf.Struct") {
    return pick([
      { a: [1, { b: "c" }, null, [], {}, true, false, ""] },
      {},
      { "": { "": -0.5 } },
      { ü: "x".repeat(50) },
    ]);
  }
  if (field.message !== undefined) return randomMessage(field.message, depth + 1);
  if (field.enum !== undefined) return pick(field.enum.values).number;
  return scalar(field.scalar!);
}

function randomMessage(desc: DescMessage, depth = 0): Record<string, unknown> {
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    if (random() < 0.3 || depth > 5) continue;
    const name = field.oneof?.localName ?? field.localName;
    if (field.oneof !== undefined) init[name] = { case: field.localName, value: value(field, depth) };
    else if (field.fieldKind === "list")
      init[name] = Array.from({ length: below(4) }, () => value(field, depth));
    else if (field.fieldKind === "map")
      init[name] = Object.fromEntries(
        Array.from({ length: below(4) }, (_, at) => [`k${at}`, value(field, depth)]),
      );
    else init[name] = value(field, depth);
  }
  return init;
}

test("every message of the contract is written and read as protobuf-es does", () => {
  assert.ok(schemas.length > 80);
  for (const desc of schemas) {
    for (let round = 0; round < 30; round++) {
      const init = randomMessage(desc);
      const message = create(desc, init as never);
      const expected = toBinary(desc, message);
      assert.deepEqual(new Uint8Array(encodeMessage(desc, message)), expected, desc.typeName);
      assert.deepEqual(
        new Uint8Array(encodeMessage(desc, init as never)),
        expected,
        `${desc.typeName} as init`,
      );
      assert.deepEqual(decodeMessage(desc, expected), fromBinary(desc, expected), desc.typeName);
    }
  }
});

test("large bytes are handed on without being copied", () => {
  const data = new Uint8Array(1_000_000).fill(1);
  const parts = encodeParts(contract.ReadFileResponseSchema, { info: { size: 5n }, data });
  assert.ok(parts.includes(data));
  assert.equal(fromBinary(contract.ReadFileResponseSchema, Buffer.concat(parts)).data.length, data.length);
});

test("a message of small parts that outgrows the buffer is written whole", () => {
  for (const text of ["x".repeat(31), "é".repeat(40), ""]) {
    const files = Array.from({ length: 20_000 }, (_, index) => ({
      path: new Uint8Array(30).fill(index),
      etag: text,
      size: 1n << 60n,
    }));
    const message = create(contract.ListFilesResponseSchema, { files });
    const expected = toBinary(contract.ListFilesResponseSchema, message);
    assert.ok(Buffer.from(expected).equals(encodeMessage(contract.ListFilesResponseSchema, message)));
    const data = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`${text}${index}`, index / 3]),
    );
    const event = create(contract.EventSchema, { data });
    assert.deepEqual(decodeMessage(contract.EventSchema, encodeMessage(contract.EventSchema, event)), event);
  }
});

test("a message that cannot be written leaves nothing behind for the next", () => {
  const info = {
    get path(): Uint8Array {
      throw new Error("no path");
    },
  };
  assert.throws(() => encodeMessage(contract.ReadFileResponseSchema, { info, data: new Uint8Array(9) }));
  assert.equal(encodeMessage(contract.GetHealthResponseSchema, {}).length, 0);
});

/** protobuf-es misreads a map's entry that has fields of its own: not a reference for that. */
function hasMap(desc: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(
    (field) => field.fieldKind === "map" || (field.message !== undefined && hasMap(field.message, seen)),
  );
}

test("whatever the bytes, they are read as protobuf-es reads them or refused", () => {
  let agreed = 0;
  for (let round = 0; round < 30_000; round++) {
    const desc = pick(schemas);
    const bytes = Buffer.from(toBinary(desc, create(desc, randomMessage(desc, 3) as never)));
    for (let count = below(4); count > 0 && bytes.length > 0; count--)
      bytes[below(bytes.length)] = below(256);
    const torn = new Uint8Array(bytes.subarray(0, bytes.length - below(3)));
    let message: unknown;
    try {
      message = decodeMessage(desc, torn);
    } catch (thrown) {
      assert.ok(thrown instanceof contract.CaissonError && thrown.code === "INVALID_INPUT", String(thrown));
      continue;
    }
    if (hasMap(desc)) continue;
    const reference = fromBinary(desc, torn, { readUnknownFields: false });
    assert.deepEqual(message, reference, desc.typeName);
    agreed++;
  }
  assert.ok(agreed > 5000);
});

test("a map's key never reaches a prototype", () => {
  const bytes = Buffer.from(
    toBinary(
      contract.ListSandboxesRequestSchema,
      create(contract.ListSandboxesRequestSchema, { labels: { xxproto__x: "v" } }),
    ),
  );
  const at = bytes.indexOf("xxproto__x");
  bytes.write("__proto__ ", at, "latin1");
  const exact = Buffer.concat([bytes.subarray(0, at + 9), bytes.subarray(at + 10)]);
  exact[at - 1]!--;
  exact[at - 3]!--;
  assert.throws(() => decodeMessage(contract.ListSandboxesRequestSchema, exact), /__proto__/);
});

test("a message whose encoding is kept is written as before, again and again", () => {
  const enforced = create(contract.EnforcementSchema, {
    tier: "container",
    mechanisms: [{ name: "seccomp" }],
  });
  const exit = create(contract.ExitSchema, { code: 3, enforced });
  const before = encodeMessage(contract.ExitSchema, exit).slice();
  keepEncoding(enforced);
  for (let turn = 0; turn < 2; turn++) assert.deepEqual(encodeMessage(contract.ExitSchema, exit), before);
});

test("a message that is shared is read once, is the same again, and cannot be changed", () => {
  shareDecoded(contract.EnforcementSchema);
  const exitOf = (...names: string[]) => {
    const enforced = { mechanisms: names.map((name) => ({ name })) };
    return decodeMessage(
      contract.ExitSchema,
      encodeMessage(contract.ExitSchema, { code: names.length, enforced }),
    );
  };
  const [one, other, again] = [exitOf("a", "b"), exitOf("a", "c"), exitOf("a", "b")];
  assert.deepEqual([one.code, again.code], [2, 2]);
  assert.equal(again.enforced, one.enforced);
  assert.notEqual(other.enforced, one.enforced);
  assert.equal(other.enforced!.mechanisms[1]!.name, "c");
  assert.throws(() => one.enforced!.mechanisms.pop(), TypeError);
  for (let count = 0; count < 100; count++) exitOf("a", String(count));
  const fresh = exitOf("a", "b").enforced;
  assert.notEqual(fresh, one.enforced, "only the last few are kept");
  assert.deepEqual(fresh, one.enforced);
});
