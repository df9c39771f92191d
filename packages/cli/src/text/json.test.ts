import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify, textOrBytes, toJson } from "./json.ts";

test("values have the contract's field names, data keeps its own", () => {
  const value = {
    sandboxId: "sb_1",
    createdAt: new Date(0),
    labels: { camelCase: "x" },
    limits: { openFiles: 3 },
    hash: Uint8Array.of(255),
    gone: undefined,
    nested: [{ timedOut: false }],
  };
  assert.deepEqual(toJson(value), {
    sandbox_id: "sb_1",
    created_at: "1970-01-01T00:00:00.000Z",
    labels: { camelCase: "x" },
    limits: { open_files: 3 },
    hash: "/w==",
    nested: [{ timed_out: false }],
  });
  assert.deepEqual(toJson({ limits: { "sizes.message_bytes": 1 } }), {
    limits: { "sizes.message_bytes": 1 },
  });
});

test("bytes are text where they are text", () => {
  assert.deepEqual(textOrBytes("path", Buffer.from("é")), { path: "é" });
  assert.deepEqual(textOrBytes("path", Uint8Array.of(0xe9)), { path_bytes: "6Q==" });
});

test("no character of the JSON acts upon a terminal, and it reads back the same", () => {
  const text = "\u001b[0m\u009b\u202e\u007f\ufeff é";
  const json = stringify({ text });
  assert.match(json, /^[\x20-\x7eé]*$/);
  assert.equal(JSON.parse(json).text, text);
});
