// One message of each kind, for fakes that answer with them.
import { create } from "@bufbuild/protobuf";
import {
  ApprovalSchema,
  FileInfoSchema,
  FileType,
  ForwardSchema,
  ImageSchema,
  NetworkSchema,
  PortSchema,
  ProcessSchema,
  SandboxSchema,
  SandboxState,
  SecretSchema,
  SnapshotSchema,
} from "@caisson/contract";

export const at = { seconds: 1_700_000_000n, nanos: 123_000_000 };
export const bytes = (text: string) => new TextEncoder().encode(text);
export const notText = Uint8Array.from([0xff, 0xfe, 0, 1]);

export const sandbox = create(SandboxSchema, {
  id: "sb_0123456789abcdef",
  state: SandboxState.READY,
  tier: 1,
  driver: "fake",
  workdir: "/work",
  labels: { team: "blue" },
  enforced: { tier: "container", mechanisms: [{ name: "seccomp", state: 1, by: "test" }] },
  createdAt: at,
  seq: 7n,
});
export const snapshot = create(SnapshotSchema, {
  id: "sn_0123456789abcdef0123456789abcdef",
  template: "ready",
  driver: "bubblewrap",
  size: 3n,
});
export const approval = create(ApprovalSchema, {
  id: "ap_0123456789",
  kind: "network",
  subject: "example.com:443",
  sandboxId: sandbox.id,
  state: 1,
  requestedAt: at,
  waiting: 2,
});
export const network = create(NetworkSchema, {
  mode: 2,
  allow: ["a.example:443"],
  limits: { bytes: 1n << 40n },
});
export const secret = create(SecretSchema, {
  name: "TOKEN",
  hosts: ["a.test"],
  inject: ["header"],
  source: "stored",
  definedIn: "set",
});
export const process = create(ProcessSchema, {
  id: "p1",
  sandboxId: sandbox.id,
  argv: ["true"],
  startedAt: at,
  seq: 9n,
});
export const file = create(FileInfoSchema, {
  path: notText,
  type: FileType.REGULAR,
  size: 11n,
  mode: 0o644,
  etag: "e1",
});

export const port = create(PortSchema, { port: 8080, address: "::", pid: 7, command: "node" });
export const forward = create(ForwardSchema, {
  id: "fw_0123456789abcdef",
  sandboxId: sandbox.id,
  port: 80,
  kind: 2,
  hostPort: 8080,
  url: "http://fw.localhost:8080/",
  openedAt: at,
});

export const image = create(ImageSchema, {
  name: "a:1",
  id: "sha256:00",
  layers: ["sha256:11"],
  sizeBytes: 5n,
  importedAt: at,
});
