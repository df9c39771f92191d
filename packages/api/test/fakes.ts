// What the faces stand on, with answers that never change: so that all faces can be compared.
import { Transform } from "node:stream";
import { create } from "@bufbuild/protobuf";
import {
  CaissonError,
  type FileEvent,
  FileEventSchema,
  FileInfoSchema,
  FileType,
  NetworkDecisionSchema,
  type ProcessEvent,
  ProcessEventSchema,
  Scope,
  SessionSchema,
  StatsSchema,
} from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import type { Store, StoredEvent } from "@caisson/store";
import type { Keys, SystemInfo } from "../src/index.ts";
import {
  approval,
  at,
  bytes,
  file,
  forward,
  image,
  network,
  notText,
  port,
  process,
  sandbox,
  secret,
  snapshot,
} from "./samples.ts";

function exitOf(code: number): ProcessEvent {
  return create(ProcessEventSchema, {
    seq: 9n,
    event: {
      case: "exit",
      value: { code, durationMs: 1.25, usage: { userMs: 0.5 }, enforced: sandbox.enforced! },
    },
  });
}

async function* processEvents(
  argv: readonly string[],
  from: bigint,
  signal: AbortSignal,
): AsyncGenerator<ProcessEvent> {
  const events = [
    create(ProcessEventSchema, { seq: 0n, event: { case: "started", value: process } }),
    create(ProcessEventSchema, {
      seq: 5n,
      event: { case: "stdout", value: { data: bytes("grüß\n").subarray(0, 5) } },
    }),
    create(ProcessEventSchema, { seq: 9n, event: { case: "stderr", value: { data: notText } } }),
    ...(argv[0] === "forever" ? [] : [exitOf(3)]),
  ];
  for (const event of events) if (event.seq > from || (from === 0n && event.seq === 0n)) yield event;
  if (argv[0] === "forever") {
    await aborted(signal);
    throw signal.reason;
  }
}

/** A process that never exits. */
export const lasting = "p999";

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
}

/** What a test wants to know or to change. */
export interface Watched {
  argv: readonly string[];
  ended: string[];
  uploads: Buffer[];
  aborted: number;
}

export function fakeEngine(watched: Watched): Engine {
  const known = (id: string) => {
    if (id !== sandbox.id) throw new CaissonError("SANDBOX_NOT_FOUND", "there is no such sandbox");
  };
  const collect = async (content: AsyncIterable<Uint8Array>) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    const all = Buffer.concat(chunks);
    watched.uploads.push(all);
    return all;
  };
  const engine: Partial<Engine> = {
    create: async () => sandbox,
    get: async (id) => {
      known(id);
      return sandbox;
    },
    list: async () => ({ sandboxes: [sandbox], nextPageToken: "next" }),
    end: async (id) => {
      known(id);
      watched.ended.push(id);
      return sandbox;
    },
    extend: async () => sandbox,
    stats: async () => create(StatsSchema, { cpuMs: 1.5, memoryBytes: 1n << 40n, pids: 2, source: "proc" }),
    openSession: async (name) => ({ session: create(SessionSchema, { name, sandbox }), created: true }),
    sessions: async () => [create(SessionSchema, { name: "one", sandbox })],
    closeSession: async (name) => create(SessionSchema, { name, sandbox }),
    start: async (id, command) => {
      known(id);
      watched.argv = command.argv ?? [];
      if (command.argv?.[0] === "crash") throw new Error("/home/someone/secret/path is broken");
      return process;
    },
    run: async (_spec, command) => {
      watched.argv = command.argv ?? [];
      return process;
    },
    attach: (id, _process, { from, signal }) => {
      known(id);
      signal.addEventListener("abort", () => watched.aborted++);
      return processEvents(watched.argv, from, signal);
    },
    process: async () => process,
    processes: async () => [process],
    wait: async (_id, processId, signal) => {
      if (processId === lasting) {
        await aborted(signal);
        watched.aborted++;
        throw signal.reason;
      }
      return process;
    },
    writeStdin: async (_id, _process, { offset, data }) => offset + BigInt(data.length),
    signal: async () => {},
    resize: async () => {},
    files: {
      stat: async () => file,
      read: async () => ({
        info: file,
        content: (async function* () {
          yield bytes("hello ");
          yield bytes("world");
        })(),
      }),
      write: async (_id, _options, content) =>
        create(FileInfoSchema, { ...file, size: BigInt((await collect(content)).length) }),
      list: async function* () {
        yield [
          file,
          create(FileInfoSchema, { path: bytes("b"), type: FileType.SYMLINK, target: bytes("a") }),
        ];
      },
      mkdir: async () => file,
      move: async () => file,
      remove: async () => {},
      watch: async function* (): AsyncGenerator<FileEvent> {
        yield create(FileEventSchema, { seq: 0n, event: { case: "ready", value: {} } });
        yield create(FileEventSchema, {
          seq: 1n,
          event: { case: "created", value: { path: bytes("n"), type: 1 } },
        });
      },
      unpack: async (_id, _path, content) => ({ files: 1n, bytes: BigInt((await collect(content)).length) }),
      pack: async () =>
        (async function* () {
          yield notText;
          yield notText;
        })(),
    },
    secrets: {
      list: async () => [secret],
      set: async () => secret,
      remove: async () => {},
    },
    owners: { ofSandbox: () => "key:read", ofSnapshot: () => "key:read" },
    snapshots: {
      pause: async () => sandbox,
      resume: async () => sandbox,
      take: async () => snapshot,
      list: () => [snapshot],
      get: () => snapshot,
      remove: async () => snapshot,
      export: async function* () {
        yield notText;
      },
      import: async (archive) => ({ ...snapshot, size: BigInt((await collect(archive)).length) }),
      fork: async () => [sandbox, sandbox],
    },
    approvals: {
      list: () => ({ approvals: [approval], nextPageToken: "next" }),
      get: () => approval,
      decide: async () => approval,
    },
    ports: {
      list: async () => [port],
      wait: async () => port,
      forward: async function* () {
        yield forward;
      },
      forwards: async () => [forward],
      close: async () => {},
      // What it hears comes back once it has heard all of it.
      connect: async () => {
        const heard: Buffer[] = [];
        return new Transform({
          transform(chunk, _encoding, done) {
            heard.push(chunk);
            done();
          },
          flush(done) {
            done(null, Buffer.concat(heard));
          },
        });
      },
    },
    changes: {
      list: async function* () {
        yield { path: notText, kind: 3, type: "file", oldSize: 5n };
        yield { path: bytes("b"), kind: 2, patch: "-a\n+b\n", linesAdded: 1, linesRemoved: 1 };
      },
      apply: async () => ({
        applyId: "a1",
        files: [
          { path: bytes("b"), outcome: 1 },
          { path: notText, outcome: 4, reason: "hook" },
        ],
      }),
      export: async function* () {
        yield notText;
        yield bytes("rest");
      },
      rebase: async () => [
        { path: bytes("b"), outcome: 2 },
        { path: notText, outcome: 3, reason: "both" },
      ],
      undo: async () => [{ path: bytes("b"), outcome: 1 }],
      discard: async () => 12,
    },
    images: {
      list: async () => [image],
      import: async function* () {
        yield { progress: { step: "layer", layersDone: 1, layers: 2, bytes: 9n } };
        yield { image };
      },
      remove: async () => 12,
      collect: async () => ({ bytes: 12, layers: 1 }),
    },
    network: {
      get: () => ({ network, presetRules: ["r.example"], usage: { connections: 1, sentBytes: 5n } }),
      update: async () => ({ network, presetRules: [], cut: 2 }),
      decisions: async () => ({
        decisions: [
          create(NetworkDecisionSchema, {
            seq: 3n,
            at,
            name: "a.example",
            port: 443,
            verdict: 2,
            rule: "no rule",
          }),
        ],
        nextPageToken: "3",
      }),
    },
    profiles: () => [],
    presets: async () => [
      {
        name: "npm",
        hosts: [{ rule: "a.test:443", from: "default", project: false, byTool: false }],
        env: { A: "b" },
        files: [],
        notes: ["n"],
      },
    ],
    drivers: async () => [],
    diagnose: async () => [],
    usage: async () => [],
    prune: async () => ({ sandboxes: 1, bytes: 5n }),
  };
  return engine as Engine;
}

const events: StoredEvent[] = [1, 2, 3].map((seq) => ({
  seq,
  at: 1_700_000_000_000 + seq,
  type: seq === 2 ? "process.exited" : "sandbox.ready",
  actor: "daemon",
  sandboxId: sandbox.id,
  processId: "",
  data: { code: seq, nested: { list: [1, "x", null] } },
  hash: Uint8Array.from([seq, 255]),
}));

export function fakeStore(): Store {
  const store: Partial<Store> = {
    head: 3,
    read: ({ from, types }) =>
      events.filter(
        (event) =>
          event.seq > from && (types === undefined || types.some((type) => event.type.startsWith(type))),
      ),
    subscribe: async function* ({ from }, signal) {
      yield* events.filter((event) => event.seq > from);
      await aborted(signal);
    },
    verify: async () => ({ intact: true, checked: 3, brokenAt: 0, reason: "", head: Uint8Array.from([9]) }),
  };
  return store as Store;
}

/** Keys whose secrets tests know. */
export const secrets = { all: "csn_all", read: "csn_read", none: "csn_none" };

export function fakeKeys(): Keys {
  const key = (name: string, scopes: Scope[]) => ({
    name,
    scopes,
    createdAt: 1_700_000_000_000,
    expiresAt: 0,
    lastUsedAt: 0,
  });
  const byName: Record<string, ReturnType<typeof key>> = {
    [secrets.all]: key("all", [Scope.READ, Scope.WRITE, Scope.APPROVE, Scope.ADMIN]),
    [secrets.read]: key("read", [Scope.READ]),
  };
  return {
    create: async (name, scopes) => ({ key: key(name, scopes), secret: "csn_made" }),
    list: () => Object.values(byName),
    revoke: async () => {},
    find: (secret) => byName[secret],
  };
}

export const system: SystemInfo = {
  version: "0.0.0",
  build: "test",
  health: () => ({ ready: true, troubles: ["none"] }),
  settings: async () => ({
    settings: [{ key: "a", value: "1", source: "default" }],
    untrustedProjectFile: "",
  }),
  trust: async () => ({ file: "/p/caisson.yaml", sha256: "00" }),
};
