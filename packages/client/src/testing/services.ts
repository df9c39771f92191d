import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  CaissonError,
  type Command,
  EventService,
  KeyService,
  ProcessService,
  RunService,
  type RunStreamRequest,
  type Sandbox,
  SandboxSchema,
  SandboxService,
  SandboxState,
  type ServedService,
  SessionService,
  SystemService,
  serve,
  WorkspaceMode,
} from "@caisson/contract";
import { approvalService, FakeApprovals } from "./approvals.ts";
import { FakeChanges, workspaceService } from "./changes.ts";
import { FakeFiles, fileService } from "./files.ts";
import { FakeProcess } from "./process.ts";
import { type FakeSecret, secretService } from "./secrets.ts";

/** A daemon in memory: the same services, no sandboxes. For tests of what talks to a daemon. */
export class FakeDaemon {
  readonly sandboxes = new Map<string, Sandbox>();
  readonly files = new Map<string, FakeFiles>();
  readonly processes = new Map<string, FakeProcess[]>();
  readonly events: { seq: bigint; type: string; sandboxId: string; data?: Record<string, string> }[] = [];
  readonly secrets = new Map<string, FakeSecret>();
  readonly approvals = new FakeApprovals((...event) => this.#tell(...event));
  readonly keys = new Map<string, { name: string; scopes: number[] }>();
  /** Requests of each method, in order. */
  readonly calls: { method: string; request: unknown }[] = [];
  readonly #changes = new Map<string, FakeChanges>();
  readonly #started = new Map<string, FakeProcess>();
  readonly #created = new Map<string, Sandbox>();

  /** Everything it serves. */
  services(): ServedService[] {
    return [
      this.#sandboxService(),
      this.#sessionService(),
      this.#processService(),
      this.#runService(),
      fileService(this),
      workspaceService(this),
      approvalService(this.approvals),
      secretService(this.secrets),
      this.#eventService(),
      this.#systemService(),
      this.#keyService(),
    ].map((served) => this.#recorded(served));
  }

  sandbox(id: string): Sandbox {
    const found = id.startsWith("session:")
      ? [...this.sandboxes.values()].find(
          (box) => box.session === id.slice(8) && box.state === SandboxState.READY,
        )
      : this.sandboxes.get(id);
    if (!found) throw new CaissonError("SANDBOX_NOT_FOUND", `there is no sandbox ${id}`);
    return found;
  }

  /** What a sandbox changed in its project. */
  changes(sandboxId: string): FakeChanges {
    const known = this.#changes.get(sandboxId) ?? new FakeChanges();
    this.#changes.set(sandboxId, known);
    return known;
  }

  process(sandboxId: string, id: string): FakeProcess {
    const found = this.processes
      .get(this.sandbox(sandboxId).id)
      ?.find((process) => process.message.id === id);
    if (!found) throw new CaissonError("PROCESS_NOT_FOUND", `there is no process ${id}`);
    return found;
  }

  #create(spec: RunStreamRequest["spec"], key: string, session = ""): Sandbox {
    const known = this.#created.get(key);
    if (key !== "" && known) return known;
    const workspace = spec?.workspace;
    const sandbox = create(SandboxSchema, {
      id: `sb_${String(this.sandboxes.size + 1).padStart(16, "0")}`,
      session,
      state: SandboxState.READY,
      tier: 1,
      driver: spec?.driver || "fake",
      profile: spec?.profile || "moderate",
      image: "host",
      workdir: workspace?.dir || "/home/agent",
      labels: spec?.labels ?? {},
      createdAt: timestampNow(),
      readyAt: timestampNow(),
      ...(workspace
        ? { workspace: { dir: workspace.dir, mode: workspace.mode || WorkspaceMode.OVERLAY } }
        : {}),
    });
    this.sandboxes.set(sandbox.id, sandbox);
    this.files.set(sandbox.id, new FakeFiles());
    this.processes.set(sandbox.id, []);
    if (key !== "") this.#created.set(key, sandbox);
    this.#tell("sandbox.ready", sandbox.id);
    return sandbox;
  }

  #start(sandbox: Sandbox, command: Command | undefined, key: string): FakeProcess {
    const known = this.#started.get(key);
    if (key !== "" && known) return known;
    if (sandbox.state !== SandboxState.READY)
      throw new CaissonError("SANDBOX_ENDED", "the sandbox has ended");
    const list = this.processes.get(sandbox.id)!;
    const process = new FakeProcess(sandbox.id, `p${list.length + 1}`, command!, sandbox.workdir);
    list.push(process);
    if (key !== "") this.#started.set(key, process);
    this.#tell("process.started", sandbox.id);
    return process;
  }

  #end(sandbox: Sandbox, reason: string): Sandbox {
    for (const process of this.processes.get(sandbox.id) ?? [])
      if (process.running) process.signal("SIGKILL");
    sandbox.state = SandboxState.ENDED;
    sandbox.endReason = reason;
    sandbox.endedAt = timestampNow();
    this.#tell("sandbox.ended", sandbox.id);
    return sandbox;
  }

  #tell(type: string, sandboxId: string, data: Record<string, string> = {}): void {
    this.events.push({ seq: BigInt(this.events.length + 1), type, sandboxId, data });
  }

  #recorded({ service, impl }: ServedService): ServedService {
    const recorded = Object.entries(impl).map(([method, run]) => [
      method,
      (request: never, call: never) => {
        this.calls.push({ method, request });
        return (run as (request: never, call: never) => unknown)(request, call);
      },
    ]);
    return { service, impl: Object.fromEntries(recorded) };
  }

  #sandboxService(): ServedService {
    return serve(SandboxService, {
      createSandbox: async ({ spec, idempotencyKey }) => ({ sandbox: this.#create(spec, idempotencyKey) }),
      getSandbox: async ({ sandboxId }) => ({ sandbox: this.sandbox(sandboxId) }),
      listSandboxes: async ({ all, labels, pageToken }) => {
        const found = [...this.sandboxes.values()]
          .filter((box) => all || box.state !== SandboxState.ENDED)
          .filter((box) => Object.entries(labels).every(([key, value]) => box.labels[key] === value))
          .reverse();
        const at = Number(pageToken || 0);
        return {
          sandboxes: found.slice(at, at + 2),
          nextPageToken: at + 2 < found.length ? String(at + 2) : "",
        };
      },
      deleteSandbox: async ({ sandboxId, forget }) => {
        const sandbox = this.#end(this.sandbox(sandboxId), "deleted");
        if (forget) this.sandboxes.delete(sandbox.id);
        return { sandbox };
      },
      extendSandbox: async ({ sandboxId }) => ({ sandbox: this.sandbox(sandboxId) }),
      getSandboxStats: async ({ sandboxId }) => {
        this.sandbox(sandboxId);
        return { stats: { cpuMs: 12.5, memoryBytes: 1048576n, pids: 2, running: 1, source: "proc" } };
      },
    });
  }

  #sessionService(): ServedService {
    const living = (name: string) =>
      [...this.sandboxes.values()].find((box) => box.session === name && box.state === SandboxState.READY);
    return serve(SessionService, {
      openSession: async ({ name, spec }) => {
        const there = living(name);
        return { session: { name, sandbox: there ?? this.#create(spec, "", name) }, created: !there };
      },
      listSessions: async () => ({
        sessions: [...this.sandboxes.values()]
          .filter((box) => box.session !== "" && box.state === SandboxState.READY)
          .map((sandbox) => ({ name: sandbox.session, sandbox })),
      }),
      closeSession: async ({ name }) => {
        const sandbox = living(name);
        if (!sandbox) throw new CaissonError("SESSION_NOT_FOUND", `there is no session ${name}`);
        return { session: { name, sandbox: this.#end(sandbox, "session_closed") } };
      },
    });
  }

  #processService(): ServedService {
    const find = this.process.bind(this);
    const start = this.#start.bind(this);
    const box = this.sandbox.bind(this);
    return serve(ProcessService, {
      async *exec({ sandboxId, command, idempotencyKey }, { signal }) {
        const process = start(box(sandboxId), command, idempotencyKey);
        yield* collected(process, { processId: process.message.id }, signal);
      },
      async *startProcess({ sandboxId, command, idempotencyKey }, { signal }) {
        const process = start(box(sandboxId), command, idempotencyKey);
        for await (const event of process.attach(0n, true, signal)) yield { event };
      },
      async *attachProcess({ sandboxId, processId, from, noFollow }, { signal }) {
        for await (const event of find(sandboxId, processId).attach(from, !noFollow, signal)) yield { event };
      },
      getProcess: async ({ sandboxId, processId }) => ({ process: find(sandboxId, processId).message }),
      listProcesses: async ({ sandboxId }) => ({
        processes: this.processes.get(box(sandboxId).id)!.map(({ message }) => message),
      }),
      writeStdin: async ({ sandboxId, processId, offset, data, end }) => ({
        offset: find(sandboxId, processId).feed(offset, data, end),
      }),
      signalProcess: async ({ sandboxId, processId, signal }) => {
        find(sandboxId, processId).signal(signal);
        return {};
      },
      resizeProcess: async ({ sandboxId, processId, columns, rows }) => {
        find(sandboxId, processId).resize(columns, rows);
        return {};
      },
      waitProcess: async ({ sandboxId, processId }, { signal }) => ({
        process: await find(sandboxId, processId).exited(signal),
      }),
    });
  }

  #runService(): ServedService {
    const begin = (request: Pick<RunStreamRequest, "spec" | "session" | "idempotencyKey" | "command">) => {
      const session =
        request.session && [...this.sandboxes.values()].find((box) => box.session === request.session);
      const sandbox = session || this.#create(request.spec, request.idempotencyKey, request.session);
      const process = this.#start(sandbox, request.command, request.idempotencyKey);
      if (!request.session) {
        void process.exited(new AbortController().signal).then(() => {
          if (sandbox.state === SandboxState.READY) this.#end(sandbox, "run_finished");
        });
      }
      return process;
    };
    return serve(RunService, {
      async *run(request, { signal }) {
        const process = begin(request);
        const ids = { sandboxId: process.message.sandboxId, processId: process.message.id };
        yield* collected(process, ids, signal);
      },
      async *runStream(request, { signal }) {
        for await (const event of begin(request).attach(0n, true, signal)) yield { event };
      },
    });
  }

  #eventService(): ServedService {
    const { events } = this;
    return serve(EventService, {
      async *subscribeEvents({ from, noFollow, sandboxId, types }, { signal }) {
        for (let next = Number(from); !signal.aborted; ) {
          while (next < events.length) {
            const event = events[next++]!;
            const wanted = types.length === 0 || types.some((type) => event.type.startsWith(type));
            if (wanted && (sandboxId === "" || event.sandboxId === sandboxId))
              yield { event: { ...event, actor: "uid:0" } };
          }
          if (noFollow) return;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      },
      verifyAudit: async () => ({
        intact: true,
        checked: BigInt(events.length),
        head: new Uint8Array([0xab]),
      }),
    });
  }

  #systemService(): ServedService {
    return serve(SystemService, {
      getHealth: async () => ({ ready: true }),
      getCapabilities: async () => ({
        contract: "v1",
        revision: 1,
        version: "0.0.0",
        build: "fake",
        limits: { "sizes.message_bytes": 4194304n },
        drivers: [{ name: "fake", tier: 1, usable: true }],
      }),
      diagnose: async () => ({
        findings: [
          { subject: "user namespaces", level: 1, message: "usable" },
          {
            subject: "landlock",
            level: 3,
            message: "not in this kernel",
            fix: "apt install linux-image-amd64",
          },
        ],
      }),
      listProfiles: async () => ({
        profiles: [
          {
            name: "moderate",
            description: "For everyday work.",
            limits: { memoryBytes: 4294967296n, pids: 1024 },
            network: "off",
            toolchains: "auto",
            explained: { network: "no network at all" },
          },
        ],
      }),
      listPresets: async ({ projectDir }) => ({
        presets: [
          {
            name: "npm",
            hosts: [
              { rule: "registry.example.com:443", from: "default" },
              { rule: "mirror.test:443", from: `${projectDir}/.npmrc`, project: true },
            ],
            notes: ["something could not be understood"],
          },
        ],
      }),
      getConfig: async () => ({ settings: [{ key: "listen.port", value: "7070", source: "default" }] }),
      trustProject: async ({ projectDir }) => ({ file: `${projectDir}/caisson.yaml`, sha256: "00ff" }),
      getUsage: async () => ({ items: [{ what: "output", bytes: 2048n, count: 3, freeableBytes: 1024n }] }),
      prune: async () => ({ sandboxes: 1, bytes: 1024n }),
    });
  }

  #keyService(): ServedService {
    return serve(KeyService, {
      createKey: async ({ name, scopes }) => {
        this.keys.set(name, { name, scopes });
        return { key: { name, scopes }, secret: "csn_secret" };
      },
      listKeys: async () => ({ keys: [...this.keys.values()] as never }),
      revokeKey: async ({ name }) => {
        if (!this.keys.delete(name)) throw new CaissonError("NOT_FOUND", `there is no key ${name}`);
        return {};
      },
    });
  }
}

async function* collected<T extends object>(process: FakeProcess, ids: T, signal: AbortSignal) {
  for await (const { event } of process.attach(0n, true, signal)) {
    if (event.case === "stdout") yield { ...ids, stdout: event.value };
    else if (event.case === "stderr") yield { ...ids, stderr: event.value };
    else if (event.case === "exit") yield { ...ids, exit: event.value };
  }
}
