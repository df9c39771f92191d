// Writes the vectors that are bytes: `node conformance/vectors/write.ts`. The bytes are protobuf's own, by a library
// that is not ours; a test compares the files with what this would write.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  create,
  type DescMessage,
  type JsonValue,
  type MessageInitShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  CaissonError,
  type ErrorCode,
  EventSchema,
  ExecRequestSchema,
  ExecResponseSchema,
  FileInfoSchema,
  GetCapabilitiesResponseSchema,
  ListSandboxesRequestSchema,
  ProcessEventSchema,
  rules,
  SandboxSchema,
  WriteStdinRequestSchema,
} from "@caisson/contract";
import { encodeJson } from "@caisson/contract/json";
import { encodeStatus } from "@caisson/contract/status";
import { encodeRequest, requestPrefix } from "@caisson/contract/ttrpc";

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
const text = (value: string) => new TextEncoder().encode(value);

function message<M extends DescMessage>(name: string, desc: M, init: MessageInitShape<M>) {
  const made = create(desc, init);
  return {
    name,
    message: desc.typeName,
    /** Protobuf's own JSON, as Connect has it. */
    json: toJson(desc, made) as JsonValue,
    /** REST's. */
    rest: encodeJson(desc, made) as JsonValue,
    bytes: base64(toBinary(desc, made)),
  };
}

const codec = [
  message("a command with everything", ExecRequestSchema, {
    sandboxId: "sb_0123456789abcdef",
    idempotencyKey: "k",
    command: {
      argv: ["sh", "-c", "echo grün"],
      env: { LANG: "C.UTF-8" },
      stdin: text("in\n"),
      terminal: { columns: 80, rows: 24 },
      timeoutMs: 4_294_967_295,
      shellState: true,
    },
  }),
  message("output that is text, and output that is not", ExecResponseSchema, {
    processId: "p1",
    stdout: { data: text("grün\n") },
    stderr: { data: new Uint8Array([0xff, 0, 0xfe]) },
    exit: { code: -1, signal: "SIGKILL", durationMs: 1.25, timedOut: true },
  }),
  message("an empty piece of output", ProcessEventSchema, { seq: 0n, event: { case: "stdout", value: {} } }),
  message("numbers beyond 2^53", ProcessEventSchema, {
    seq: 18446744073709551615n,
    event: { case: "gap", value: { missingBytes: 9007199254740993n } },
  }),
  message("a name that is not UTF-8", FileInfoSchema, {
    path: new Uint8Array([0x61, 0xff]),
    type: 1,
    size: 5n,
    mode: 0o644,
  }),
  message("an event with a time and a free form", EventSchema, {
    seq: 7n,
    at: { seconds: 1_700_000_000n, nanos: 5_000_000 },
    type: "process.exited",
    actor: "uid:1000",
    data: { code: 3, list: [1, "two", null, true], deep: { a: {} } },
    hash: new Uint8Array(32).fill(7),
  }),
  message("maps and pages", ListSandboxesRequestSchema, {
    labels: { team: "blue", "": "" },
    all: true,
    pageSize: 5,
  }),
  message("input by offset", WriteStdinRequestSchema, {
    sandboxId: "s",
    processId: "p1",
    offset: 3n,
    data: new Uint8Array([0x80]),
    end: true,
  }),
  message("limits by name", GetCapabilitiesResponseSchema, {
    contract: "v1",
    revision: 1,
    limits: { "sizes.message_bytes": 4194304n },
  }),
  message("nothing set", SandboxSchema, {}),
];

const errors = (Object.keys(rules.errors) as ErrorCode[]).map((code) => {
  const error = new CaissonError(code, "a sentence — with ü", { metadata: { rule: "x" } });
  const { status, http, next } = rules.errors[code];
  return {
    code,
    status,
    number: error.statusNumber,
    http,
    next_step: next,
    grpc_status: base64(encodeStatus(error, "r1")),
  };
});

const frame = (
  name: string,
  about: {
    service: string;
    method: string;
    payload?: Uint8Array;
    timeoutMs?: number;
    metadata?: Record<string, string>;
  },
) => {
  const { service, method, payload, timeoutMs, metadata } = about;
  const bytes = encodeRequest(3, payload ? 0 : 2, requestPrefix(service, method), payload, {
    timeoutMs,
    metadata,
  });
  return {
    name,
    frame: bytes.toString("hex"),
    stream: 3,
    type: 1,
    service,
    method,
    ...(payload && { payload: base64(payload) }),
    timeout_nano: (timeoutMs ?? 0) * 1e6,
    metadata: metadata ?? {},
  };
};
const ttrpc = [
  frame("an empty message", {
    service: "caisson.v1.SystemService",
    method: "GetHealth",
    payload: new Uint8Array(0),
  }),
  frame("a stream whose messages follow", { service: "caisson.v1.FileService", method: "WriteFile" }),
  frame("with a deadline and metadata", {
    service: "caisson.v1.SandboxService",
    method: "GetSandbox",
    payload: new Uint8Array([0x0a, 1, 0x78]),
    timeoutMs: 1500,
    metadata: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
  }),
];

/** The files by name, as they should be. */
export const written: Record<string, string> = {
  "codec.json": document(
    "Messages as bytes, as protobuf's JSON and as REST's JSON (spec/behavior.md, JSON and HTTP).",
    codec,
  ),
  "errors.json": document(
    "Every error: its statuses, and as google.rpc.Status with ErrorInfo, as gRPC and ttRPC carry it.",
    errors,
  ),
  "ttrpc.json": document("ttRPC request frames, header and envelope, and what is in them.", ttrpc),
};

function document(about: string, cases: object[]): string {
  const lines = cases.map((one) => `    ${JSON.stringify(one)}`).join(",\n");
  return `{\n  "about": ${JSON.stringify(about)},\n  "cases": [\n${lines}\n  ]\n}\n`;
}

if (import.meta.main) {
  for (const [name, content] of Object.entries(written))
    writeFileSync(join(import.meta.dirname, name), content);
}
