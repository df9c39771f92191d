import type { Duplex } from "node:stream";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Approval,
  CallContext,
  Command,
  CommandSchema,
  DriverInfo,
  FileEvent,
  FileInfo,
  Finding,
  Forward,
  ForwardKind,
  Image,
  ImportProgressSchema,
  Network,
  NetworkDecision,
  NetworkUsageSchema,
  Port,
  Process,
  ProcessEvent,
  Profile,
  Sandbox,
  SandboxSpec,
  SandboxSpecSchema,
  Secret,
  Session,
  Snapshot,
  Stats,
  UpdateNetworkRequest,
  UsageItem,
} from "@caisson/contract";

import type { Decision } from "../approvals/index.ts";
import type { Applied, AppliedInit, ChangeInit, ExportOptions, ListOptions } from "../changes/index.ts";
import type { ImageSource } from "../images/index.ts";
import type { ResolvedPreset } from "../presets/index.ts";

export type SpecInit = MessageInitShape<typeof SandboxSpecSchema>;
export type CommandInit = MessageInitShape<typeof CommandSchema>;

/** Sandboxes that hold still, are kept, and are made again. A snapshot goes by its id or a template's name. */
export interface EngineSnapshots {
  pause(sandboxId: string, call: CallContext): Promise<Sandbox>;
  resume(sandboxId: string, call: CallContext): Promise<Sandbox>;
  take(
    sandboxId: string,
    options: { memory: boolean; template: string; labels: Record<string, string> },
    call: CallContext,
  ): Promise<Snapshot>;
  list(templates: boolean): Snapshot[];
  get(name: string): Snapshot;
  remove(name: string, call: CallContext): Promise<Snapshot>;
  /** As one tar archive. */
  export(name: string): AsyncIterable<Uint8Array>;
  /** Brings in what `export` wrote, here or elsewhere. */
  import(
    archive: AsyncIterable<Uint8Array>,
    options: { memory: boolean; template: string; labels: Record<string, string> },
    call: CallContext,
  ): Promise<Snapshot>;
  fork(sandboxId: string, count: number, call: CallContext): Promise<Sandbox[]>;
}

/** Sandboxes, and what happens in them. Every face calls this and nothing below it. */
export interface Engine {
  readonly snapshots: EngineSnapshots;
  create(spec: SpecInit, options: CreateOptions, call: CallContext): Promise<Sandbox>;
  /** An id, or `session:NAME`. */
  get(sandboxId: string): Promise<Sandbox>;
  list(query: ListQuery): Promise<{ sandboxes: Sandbox[]; nextPageToken: string }>;
  /** Ends it; `forget` also drops its record and kept output, and so does deleting one that has ended
   * already. With a key, a repeated call does nothing more. */
  end(sandboxId: string, options: EndOptions, call: CallContext): Promise<Sandbox>;
  extend(
    sandboxId: string,
    change: { idleTtlS: number; maxAgeS: number },
    call: CallContext,
  ): Promise<Sandbox>;
  stats(sandboxId: string): Promise<Stats>;

  openSession(
    name: string,
    spec: SpecInit,
    call: CallContext,
  ): Promise<{ session: Session; created: boolean }>;
  sessions(): Promise<Session[]>;
  closeSession(name: string, call: CallContext): Promise<Session>;

  /** Starts a command; resolves when it runs. With a key that is known, returns the first one. */
  start(
    sandboxId: string,
    command: CommandInit,
    options: { key: string },
    call: CallContext,
  ): Promise<Process>;
  /** One command in a fresh sandbox that ends when the command has exited; with a session, in the session's
   * sandbox, which stays. Resolves when the command runs. Nothing waits between the sandbox's seal and
   * the command's start, so this is faster than `create` and `start`. */
  run(spec: SpecInit, command: CommandInit, options: RunOptions, call: CallContext): Promise<Process>;
  /** Events of a process after number `from`; begins with `started` when `from` is 0. */
  attach(sandboxId: string, processId: string, options: AttachOptions): AsyncIterable<ProcessEvent>;
  process(sandboxId: string, processId: string): Promise<Process>;
  processes(sandboxId: string): Promise<Process[]>;
  wait(sandboxId: string, processId: string, signal: AbortSignal): Promise<Process>;
  writeStdin(
    sandboxId: string,
    processId: string,
    input: { offset: bigint; data: Uint8Array; end: boolean },
  ): Promise<bigint>;
  signal(sandboxId: string, processId: string, signal: string, call: CallContext): Promise<void>;
  resize(sandboxId: string, processId: string, columns: number, rows: number): Promise<void>;

  readonly owners: EngineOwners;
  readonly files: EngineFiles;
  readonly changes: EngineChanges;
  readonly approvals: EngineApprovals;
  readonly ports: EnginePorts;
  readonly secrets: EngineSecrets;
  readonly images: EngineImages;
  readonly network: EngineNetwork;

  /** What does not work at the moment, as sentences. */
  troubles(): string[];
  profiles(): Profile[];
  /** What presets lead to now, for a project or for none (empty). */
  presets(names: readonly string[], projectDir: string, call: CallContext): Promise<ResolvedPreset[]>;
  drivers(): Promise<DriverInfo[]>;
  diagnose(): Promise<Finding[]>;
  usage(): Promise<UsageItem[]>;
  /** With `agents` also what agents keep of their own. */
  prune(call: CallContext, agents: boolean): Promise<{ sandboxes: number; bytes: bigint }>;
  /** Lets go of every sandbox without ending it. */
  close(): Promise<void>;
}

/** Who made what, as an actor; undefined if it is not there. */
export interface EngineOwners {
  /** Living or ended; an id, or `session:NAME`. */
  ofSandbox(sandboxId: string): string | undefined;
  ofSnapshot(name: string): string | undefined;
}

export interface CreateOptions {
  /** Idempotency key, or empty. */
  key: string;
  session?: string;
  /** Wait for a place instead of returning a queued sandbox. Default: true. */
  wait?: boolean;
}

export interface EndOptions {
  /** One of `end_reasons` in spec/rules.json. */
  reason: string;
  forget: boolean;
  /** Idempotency key, or empty. */
  key?: string;
}

export interface RunOptions {
  /** Idempotency key, or empty. */
  key: string;
  session?: string;
}

export interface ListQuery {
  /** Only what this actor has made. Default: everything. */
  owner?: string;
  labels: Record<string, string>;
  all: boolean;
  pageSize: number;
  pageToken: string;
}

export interface AttachOptions {
  from: bigint;
  follow: boolean;
  signal: AbortSignal;
  /** Keep what this reader has not seen yet: where retention would drop it, the process waits instead,
   * for as long as the reader goes on taking something every half minute. For the stream of the one
   * who started the process. Default: false: the reader gets a gap. */
  hold?: boolean;
}

/** What a sandbox changed in the project that it has as an overlay. */
export interface EngineChanges {
  /** In the order of paths. */
  list(sandboxId: string, options: ListOptions): AsyncIterable<ChangeInit>;
  /** In a form that other tools take. */
  export(sandboxId: string, options: ExportOptions): AsyncIterable<Uint8Array>;
  /** Brings the changes of an ended sandbox up to what the project is now. */
  rebase(sandboxId: string, call: CallContext): Promise<AppliedInit[]>;
  apply(
    sandboxId: string,
    options: { paths: readonly string[]; dryRun: boolean; force?: boolean },
    call: CallContext,
  ): Promise<Applied>;
  /** Takes an apply back, the latest if none is named. */
  undo(sandboxId: string, applyId: string, call: CallContext): Promise<AppliedInit[]>;
  /** Throws everything away; resolves with the bytes that were freed. */
  discard(sandboxId: string, call: CallContext): Promise<number>;
}

/** What sandboxes may reach, and what they tried to. */
export interface EngineNetwork {
  get(sandboxId: string): {
    network: Network;
    presetRules: string[];
    usage: MessageInitShape<typeof NetworkUsageSchema>;
  };
  /** In force and on disk when it resolves; `cut` counts the open connections that it ended. */
  update(
    request: UpdateNetworkRequest,
    call: CallContext,
  ): Promise<{ network: Network; presetRules: string[]; cut: number }>;
  /** Newest first. */
  decisions(query: {
    sandboxId: string;
    refusedOnly: boolean;
    pageSize: number;
    pageToken: string;
  }): Promise<{
    decisions: NetworkDecision[];
    nextPageToken: string;
  }>;
}

/** What programs inside listen on. Port numbers are checked already. */
export interface EnginePorts {
  list(sandboxId: string): Promise<Port[]>;
  /** Resolves when somebody listens there. */
  wait(
    sandboxId: string,
    wanted: { port: number; timeoutMs: number },
    call: Pick<CallContext, "signal">,
  ): Promise<Port>;
  /** Opens a port of this machine. It is closed when the iteration is left, unless it is detached. */
  forward(
    sandboxId: string,
    request: { port: number; hostPort: number; kind: ForwardKind; detach: boolean },
    call: CallContext,
  ): AsyncIterable<Forward>;
  forwards(sandboxId: string): Promise<Forward[]>;
  close(sandboxId: string, forwardId: string, call: CallContext): Promise<void>;
  /** One connection to a port inside. */
  connect(sandboxId: string, port: number, call: Pick<CallContext, "signal">): Promise<Duplex>;
}

/** Requests that wait for an answer. */
export interface EngineApprovals {
  /** Newest first. */
  list(query: { sandboxId: string; all: boolean; pageSize: number; pageToken: string }): {
    approvals: Approval[];
    nextPageToken: string;
  };
  get(id: string): Approval;
  /** Resolves when the answer is on disk. */
  decide(id: string, decision: Decision, call: CallContext): Promise<Approval>;
}

/** What sandboxes can be made from, beside the host. */
export interface EngineImages {
  /** By name. */
  list(): Promise<Image[]>;
  /** Tells how far it is; the last one is the image. */
  import(
    source: ImageSource,
    name: string,
    call: CallContext,
  ): AsyncIterable<{ progress: MessageInitShape<typeof ImportProgressSchema> } | { image: Image }>;
  /** Resolves with the bytes that were freed. */
  remove(name: string, call: CallContext): Promise<number>;
  collect(): Promise<{ bytes: number; layers: number }>;
}

/** What is put into requests on a sandbox's behalf. Values go in and never come out. */
export interface EngineSecrets {
  list(): Promise<Secret[]>;
  set(
    secret: {
      name: string;
      hosts: string[];
      inject: string[];
      source: SecretReference | undefined;
      value: string | undefined;
    },
    call: CallContext,
  ): Promise<Secret>;
  remove(name: string, call: CallContext): Promise<void>;
}

export type SecretReference = { env: string } | { file: string } | { command: string[] };

/** The file calls; paths as the caller gave them, relative ones from the working directory. */
export interface EngineFiles {
  stat(sandboxId: string, path: string, follow: boolean, call: CallContext): Promise<FileInfo>;
  read(
    sandboxId: string,
    path: string,
    range: { offset: bigint; length: bigint },
    call: CallContext,
  ): Promise<{ info: FileInfo; content: AsyncIterable<Uint8Array> }>;
  write(
    sandboxId: string,
    options: { path: string; mode: number; parents: boolean; ifMatch: string },
    content: AsyncIterable<Uint8Array>,
    call: CallContext,
  ): Promise<FileInfo>;
  list(sandboxId: string, path: string, recursive: boolean, call: CallContext): AsyncIterable<FileInfo[]>;
  mkdir(
    sandboxId: string,
    path: string,
    options: { parents: boolean; mode: number },
    call: CallContext,
  ): Promise<FileInfo>;
  move(sandboxId: string, from: string, to: string, overwrite: boolean, call: CallContext): Promise<FileInfo>;
  remove(sandboxId: string, path: string, recursive: boolean, call: CallContext): Promise<void>;
  watch(sandboxId: string, path: string, recursive: boolean, call: CallContext): AsyncIterable<FileEvent>;
  unpack(
    sandboxId: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    call: CallContext,
  ): Promise<{ files: bigint; bytes: bigint }>;
  pack(sandboxId: string, path: string, call: CallContext): Promise<AsyncIterable<Uint8Array>>;
}

export type { Command, SandboxSpec };
