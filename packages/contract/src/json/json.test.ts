import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage } from "@bufbuild/protobuf";
import { CaissonError } from "../errors.ts";
import { EventSchema } from "../gen/caisson/v1/event_pb.ts";
import { FileInfoSchema, FileType } from "../gen/caisson/v1/file_pb.ts";
import { ExecResponseSchema, ProcessEventSchema, RunRequestSchema } from "../gen/caisson/v1/process_pb.ts";
import { decodeJson, encodeJson, parseJson } from "./index.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function refused(desc: DescMessage, json: unknown): string {
  try {
    decodeJson(desc, json as never);
  } catch (thrown) {
    assert.ok(thrown instanceof CaissonError);
    assert.equal(thrown.code, "INVALID_INPUT");
    return thrown.message;
  }
  return assert.fail(`accepted ${JSON.stringify(json)}`);
}

test("output is text where it is UTF-8 and base64 where it is not", () => {
  const message = create(ExecResponseSchema, {
    processId: "p1",
    stdout: { data: bytes("grüß\n") },
    stderr: { data: new Uint8Array([255, 0]) },
    exit: { code: 0, durationMs: 1.5 },
  });
  const json = encodeJson(ExecResponseSchema, message) as Record<string, Record<string, unknown>>;
  assert.deepEqual(json.stdout, { text: "grüß\n" });
  assert.deepEqual(json.stderr, { bytes: "/wA=" });
  assert.equal(json.exit?.code, 0, "zero is said, not left out");
  assert.equal(json.exit?.duration_ms, 1.5);
  assert.deepEqual(decodeJson(ExecResponseSchema, json as never), message);
});

test("a oneof, an enum, a 64-bit number, a time and a struct survive the way", () => {
  const event = create(EventSchema, {
    seq: 12345678901234567890n,
    at: { seconds: 1_700_000_000n, nanos: 5_000_000 },
    data: { deep: { list: [1, "two", null] } },
    hash: new Uint8Array([1, 2]),
  });
  const json = encodeJson(EventSchema, event) as Record<string, unknown>;
  assert.equal(json.seq, "12345678901234567890");
  assert.equal(json.at, "2023-11-14T22:13:20.005Z");
  assert.deepEqual(decodeJson(EventSchema, json as never), event);

  const file = create(FileInfoSchema, { path: bytes("a"), type: FileType.DIRECTORY });
  assert.deepEqual(encodeJson(FileInfoSchema, file), {
    path: "a",
    type: "FILE_TYPE_DIRECTORY",
    size: "0",
    mode: 0,
    target: "",
    etag: "",
  });
  const chunk = create(ProcessEventSchema, { seq: 1n, event: { case: "gap", value: { missingBytes: 3n } } });
  assert.deepEqual(encodeJson(ProcessEventSchema, chunk), { seq: "1", gap: { missing_bytes: "3" } });
});

test("unknown fields, other spellings and wrong types are refused by name", () => {
  assert.match(refused(RunRequestSchema, { nope: 1 }), /`nope` is not a field of RunRequest/);
  assert.match(
    refused(RunRequestSchema, { command: { keepStdin: true } }),
    /`command.keepStdin`.*`keep_stdin`/,
  );
  assert.match(refused(RunRequestSchema, { command: { argv: "ls" } }), /argv/);
  assert.match(refused(RunRequestSchema, { command: [] }), /`command` must be an object/);
  assert.match(refused(RunRequestSchema, []), /the body must be an object/);
  assert.match(refused(RunRequestSchema, { command: { timeout_ms: -1 } }), /timeout_ms/);
  assert.match(refused(ExecResponseSchema, { stdout: { text: "a", bytes: "YQ==" } }), /given twice/);
  assert.match(refused(ExecResponseSchema, { stdout: { text: "\ud800" } }), /must be a string/);
});

test("nothing reaches a prototype", () => {
  for (const text of [
    '{"__proto__": {"polluted": true}}',
    '{"command": {"env": {"__proto__": "x"}}}',
    '{"command": {"__proto__": {"argv": ["x"]}}}',
    '{"constructor": {"prototype": {}}}',
  ]) {
    refused(RunRequestSchema, parseJson(bytes(text)));
  }
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

test("deep, torn and non-UTF-8 documents are refused before they are parsed", () => {
  const deep = bytes(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`);
  assert.throws(() => parseJson(deep), { code: "INVALID_INPUT" });
  assert.throws(() => parseJson(new Uint8Array([0x22, 0xff, 0x22])), { code: "INVALID_INPUT" });
  assert.throws(
    () => parseJson(bytes('{"secret-canary":')),
    (error: CaissonError) => !error.message.includes("canary"),
  );
  assert.deepEqual(parseJson(bytes(`"${"[".repeat(1000)}\\"{"`)), `${"[".repeat(1000)}"{`);
});
