import type { DescMethod } from "@bufbuild/protobuf";
import {
  EventService,
  FileService,
  KeyService,
  ProcessService,
  RunService,
  SandboxService,
  SessionService,
  SystemService,
} from "@caisson/contract";
import { notText, sandbox } from "./fakes.ts";

const box = { sandboxId: sandbox.id };
const both = { ...box, processId: "p1" };
const command = { argv: ["true", "ü"], env: { A: "b" }, stdin: new TextEncoder().encode("in") };

/** One call of every method: the requests, one for all that do not stream them. */
export const requests: [DescMethod, object[]][] = [
  [SandboxService.method.createSandbox, [{ idempotencyKey: "k1", spec: { labels: { a: "b" } } }]],
  [SandboxService.method.getSandbox, [box]],
  [SandboxService.method.listSandboxes, [{ labels: { team: "blue" }, all: true, pageSize: 5 }]],
  [SandboxService.method.deleteSandbox, [{ ...box, forget: true }]],
  [SandboxService.method.extendSandbox, [{ ...box, idleTtlS: 5 }]],
  [SandboxService.method.getSandboxStats, [box]],
  [SessionService.method.openSession, [{ name: "s.1", spec: {} }]],
  [SessionService.method.listSessions, [{}]],
  [SessionService.method.closeSession, [{ name: "s.1" }]],
  [ProcessService.method.exec, [{ ...box, command }]],
  [ProcessService.method.startProcess, [{ ...box, idempotencyKey: "k2", command }]],
  [ProcessService.method.attachProcess, [{ ...both, from: 5n }]],
  [ProcessService.method.getProcess, [both]],
  [ProcessService.method.listProcesses, [box]],
  [ProcessService.method.writeStdin, [{ ...both, offset: 3n, data: notText, end: true }]],
  [ProcessService.method.signalProcess, [{ ...both, signal: "SIGTERM" }]],
  [ProcessService.method.resizeProcess, [{ ...both, columns: 80, rows: 24 }]],
  [ProcessService.method.waitProcess, [both]],
  [RunService.method.run, [{ spec: {}, command }]],
  [RunService.method.runStream, [{ spec: {}, command }]],
  [FileService.method.statFile, [{ ...box, path: "ä b/&?", follow: true }]],
  [FileService.method.readFile, [{ ...box, path: "f" }]],
  [
    FileService.method.writeFile,
    [{ ...box, path: "f", mode: 0o600, parents: true }, { data: notText }, { data: notText }],
  ],
  [FileService.method.listFiles, [{ ...box, path: ".", recursive: true }]],
  [FileService.method.makeDirectory, [{ ...box, path: "d" }]],
  [FileService.method.moveFile, [{ ...box, from: "a", to: "b" }]],
  [FileService.method.removeFile, [{ ...box, path: "a", recursive: true }]],
  [FileService.method.watchFiles, [{ ...box, path: "." }]],
  [FileService.method.uploadArchive, [{ ...box, path: "." }, { data: notText }]],
  [FileService.method.downloadArchive, [{ ...box, path: "." }]],
  [EventService.method.subscribeEvents, [{ from: 1n, noFollow: true, types: ["process", "sandbox"] }]],
  [EventService.method.verifyAudit, [{ from: 1n }]],
  [SystemService.method.getHealth, [{}]],
  [SystemService.method.getCapabilities, [{}]],
  [SystemService.method.diagnose, [{}]],
  [SystemService.method.listProfiles, [{}]],
  [SystemService.method.getConfig, [{ projectDir: "/p" }]],
  [SystemService.method.trustProject, [{ projectDir: "/p" }]],
  [SystemService.method.getUsage, [{}]],
  [SystemService.method.prune, [{}]],
  [KeyService.method.createKey, [{ name: "k", scopes: [2, 3] }]],
  [KeyService.method.listKeys, [{}]],
  [KeyService.method.revokeKey, [{ name: "k" }]],
];
