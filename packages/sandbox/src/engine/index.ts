import { create, toJson } from "@bufbuild/protobuf";
import {
  CaissonError,
  CommandSchema,
  type Sandbox,
  SandboxSpecSchema,
  SandboxState,
} from "@caisson/contract";
import { trialsOver } from "../driver/cached-probe.ts";
import { engineApprovals } from "./approvals.ts";
import type { Box } from "./box.ts";
import { engineChanges } from "./changes.ts";
import { EngineContext } from "./context.ts";
import { createBox } from "./create.ts";
import { describeDrivers } from "./drivers.ts";
import type { Engine } from "./engine.ts";
import { engineFiles } from "./files.ts";
import { endedOrUnknown, endedRecord, livingBox, readyBox, sandboxRecord } from "./find.ts";
import { forgetSandbox } from "./forget.ts";
import { engineImages } from "./images.ts";
import { endBox } from "./lifecycle.ts";
import { listSandboxes, messageOf } from "./list.ts";
import { engineNetwork } from "./network/index.ts";
import { engineOwners } from "./owners.ts";
import type { EngineParts } from "./parts.ts";
import { enginePorts } from "./ports.ts";
import { presetSource } from "./presets.ts";
import { attach } from "./process/attach.ts";
import { findProcess, listProcesses } from "./process/find.ts";
import { writeStdin } from "./process/input.ts";
import type { Proc } from "./process/proc.ts";
import { startProcess } from "./process/start.ts";
import { recover } from "./recovery.ts";
import { runInFresh, runInSession, runRequest } from "./run.ts";
import { engineSecrets } from "./secrets.ts";
import { openSession, toSession } from "./sessions.ts";
import { signalNumber } from "./signals.ts";
import { engineSnapshots } from "./snapshots/index.ts";
import { statsOf } from "./stats.ts";
import { Upkeep } from "./upkeep.ts";
import { prune, usageItems } from "./usage.ts";

const warmAfterMs = 300;

/** Opens the engine: finds what an earlier daemon left, then serves. */
export async function openEngine(parts: EngineParts): Promise<Engine> {
  const context = new EngineContext(parts);
  // What the configuration says wrong is told at the start.
  if (Object.keys(context.settings.secrets).length > 0) await context.secrets();
  await recover(context);
  // Once whoever opened it serves: the first to ask should not wait for the rules.
  setTimeout(() => context.toolchains.find().catch(() => {}), warmAfterMs).unref();
  return new SandboxEngine(context);
}

class SandboxEngine implements Engine {
  readonly files: Engine["files"];
  readonly changes: Engine["changes"];
  readonly network: Engine["network"];
  readonly approvals: Engine["approvals"];
  readonly ports: Engine["ports"];
  readonly secrets: Engine["secrets"];
  readonly images: Engine["images"];
  readonly snapshots: Engine["snapshots"];
  readonly owners: Engine["owners"];
  readonly #context: EngineContext;
  readonly #upkeep: Upkeep;

  constructor(context: EngineContext) {
    this.#context = context;
    this.files = engineFiles(context);
    this.changes = engineChanges(context);
    this.network = engineNetwork(context);
    this.approvals = engineApprovals(context);
    this.ports = enginePorts(context);
    this.secrets = engineSecrets(context);
    this.images = engineImages(context);
    this.snapshots = engineSnapshots(context, this);
    this.owners = engineOwners(context);
    this.#upkeep = new Upkeep(context);
  }

  create: Engine["create"] = async (spec, options, call) => {
    const { session = "", wait = true } = options;
    if (session) return (await this.openSession(session, spec, call)).session.sandbox!;
    return this.#context.idempotency.once({
      key: options.key,
      scope: ["create", call.actor],
      request: () => toJson(SandboxSpecSchema, create(SandboxSpecSchema, spec)),
      act: async (remember) => {
        const request = { session, wait, remember: (sandboxId: string) => remember({ sandboxId }) };
        return (await createBox(this.#context, spec, request, call)).message();
      },
      find: ({ sandboxId }) => this.get(sandboxId),
    });
  };

  get: Engine["get"] = async (sandboxId) => messageOf(this.#context, sandboxRecord(this.#context, sandboxId));

  list: Engine["list"] = async (query) => listSandboxes(this.#context, query);

  end: Engine["end"] = async (sandboxId, { reason, forget, key = "" }, call) =>
    this.#context.idempotency.once({
      key,
      scope: ["end", call.actor, sandboxId],
      request: () => [sandboxId, forget],
      act: async (remember) => {
        const { record, sandbox } = await this.#end(sandboxId, reason, forget, call.actor);
        if (key) await this.#context.commit([], remember({ sandboxId: record }));
        return sandbox;
      },
      find: async (result) => {
        const record = endedRecord(this.#context, result.sandboxId);
        if (record) return messageOf(this.#context, record);
        throw new CaissonError("SANDBOX_NOT_FOUND", "the sandbox was ended and forgotten");
      },
    });

  async #end(
    sandboxId: string,
    reason: string,
    forget: boolean,
    actor: string,
  ): Promise<{ record: string; sandbox: Sandbox }> {
    const context = this.#context;
    const box = livingBox(context, sandboxId);
    // Deleting one that has ended already forgets it.
    if (!box && (reason !== "deleted" || !endedRecord(context, sandboxId)))
      throw endedOrUnknown(context, sandboxId);
    if (box) await endBox(context, box, reason, "", actor);
    if (box?.unrecorded) throw box.unrecorded;
    const record = box?.record ?? endedRecord(context, sandboxId)!;
    const sandbox = messageOf(context, record);
    if (!box || forget) await forgetSandbox(context, record, actor);
    return { record: record.id, sandbox };
  }

  extend: Engine["extend"] = async (sandboxId, { idleTtlS, maxAgeS }, call) => {
    const box = livingBox(this.#context, sandboxId);
    if (!box) throw endedOrUnknown(this.#context, sandboxId);
    if (box.ending) throw box.notReady();
    if (idleTtlS) box.record.idleTtlS = idleTtlS;
    if (maxAgeS) box.record.maxAgeS = maxAgeS;
    const data = { idle_ttl_s: box.record.idleTtlS, max_age_s: box.record.maxAgeS };
    await this.#context.commit(
      [{ type: "sandbox.extended", actor: call.actor, sandboxId: box.id, data }],
      [box.put()],
    );
    return messageOf(this.#context, box.record);
  };

  stats: Engine["stats"] = async (sandboxId) =>
    statsOf(this.#context, await readyBox(this.#context, sandboxId));

  openSession: Engine["openSession"] = async (name, spec, call) => {
    const { box, created } = await openSession(this.#context, name, spec, call);
    return { session: toSession(box), created };
  };

  sessions: Engine["sessions"] = async () =>
    [...this.#context.sessions.values()].filter((box) => !box.ending).map(toSession);

  closeSession: Engine["closeSession"] = async (name, call) => {
    const box = livingBox(this.#context, `session:${name}`)!;
    await endBox(this.#context, box, "session_closed", "", call.actor);
    if (box.unrecorded) throw box.unrecorded;
    return toSession(box);
  };

  start: Engine["start"] = async (sandboxId, command, { key }, call) => {
    const box = await readyBox(this.#context, sandboxId);
    const done = this.#context.parts.pool.working();
    try {
      const started = await this.#context.idempotency.once<Proc | string>({
        key,
        scope: ["start", call.actor, box.id],
        request: () => toJson(CommandSchema, create(CommandSchema, command)),
        act: (remember) =>
          startProcess(
            this.#context,
            box,
            box.livingGuest(),
            command,
            { remember: (processId) => remember({ sandboxId: box.id, processId }), endsSandbox: false },
            call,
          ),
        find: async (result) => result.processId!,
      });
      return typeof started === "string" ? this.process(box.id, started) : started.message();
    } finally {
      done();
    }
  };

  run: Engine["run"] = async (spec, command, options, call) => {
    const context = this.#context;
    const { key, session } = options;
    const done = context.parts.pool.working();
    try {
      const started = await context.idempotency.once<Proc | { sandboxId: string; processId: string }>({
        key,
        scope: ["run", call.actor],
        request: () => runRequest(spec, command, options),
        act: (remember) =>
          session
            ? runInSession(context, session, spec, command, remember, call)
            : runInFresh(context, spec, command, remember, call),
        find: async (result) => ({ sandboxId: result.sandboxId, processId: result.processId! }),
      });
      return "processId" in started ? this.process(started.sandboxId, started.processId) : started.message();
    } finally {
      done();
    }
  };

  attach: Engine["attach"] = (sandboxId, processId, options) => {
    const context = this.#context;
    return (async function* () {
      yield* attach(findProcess(context, sandboxRecord(context, sandboxId), processId), options);
    })();
  };

  process: Engine["process"] = async (sandboxId, processId) =>
    findProcess(this.#context, sandboxRecord(this.#context, sandboxId), processId).message();

  processes: Engine["processes"] = async (sandboxId) =>
    listProcesses(this.#context, sandboxRecord(this.#context, sandboxId));

  wait: Engine["wait"] = async (sandboxId, processId, signal) => {
    const proc = livingBox(this.#context, sandboxId)?.processes.get(processId);
    if (proc && !proc.record.exit) await abortable(proc.exited.promise, signal);
    return this.process(sandboxId, processId);
  };

  writeStdin: Engine["writeStdin"] = async (sandboxId, processId, input) =>
    writeStdin(await this.#living(sandboxId, processId), input);

  signal: Engine["signal"] = async (sandboxId, processId, signal, call) => {
    const number = signalNumber(signal);
    const proc = await this.#running(sandboxId, processId);
    await proc.box.livingGuest().signal(proc.record.stream, number, false);
    await this.#context.commit([
      {
        type: "process.signalled",
        actor: call.actor,
        sandboxId: proc.box.id,
        processId: proc.id,
        data: { signal: number },
      },
    ]);
  };

  resize: Engine["resize"] = async (sandboxId, processId, columns, rows) => {
    const proc = await this.#running(sandboxId, processId);
    if (!proc.record.hasTerminal) throw new CaissonError("NO_TERMINAL", "the process has no terminal");
    await proc.box.livingGuest().resize(proc.record.stream, columns, rows);
  };

  troubles: Engine["troubles"] = () => [...this.#context.troubles.values()];

  profiles: Engine["profiles"] = () => this.#context.profiles.list();

  presets: Engine["presets"] = async (names, projectDir, call) => {
    const { presetNames, resolvePresets } = await import("../presets/index.ts");
    const source = presetSource(this.#context, projectDir, call.surroundings);
    return resolvePresets(names.length > 0 ? names : presetNames, source);
  };

  drivers: Engine["drivers"] = () => describeDrivers(this.#context.parts.drivers);

  diagnose: Engine["diagnose"] = async () => {
    const { diagnose } = await import("../doctor/index.ts");
    const { parts, cgroups, troubles } = this.#context;
    return diagnose({ drivers: parts.drivers, cgroups, home: parts.home, troubles });
  };

  usage: Engine["usage"] = () => usageItems(this.#context);

  prune: Engine["prune"] = (call, agents) => prune(this.#context, call.actor, agents);

  close: Engine["close"] = async () => {
    const context = this.#context;
    context.closing = true;
    context.approvals.close();
    context.forwards.closeAll();
    this.#upkeep.stop();
    context.watcher.stop();
    context.diskWatcher.stop();
    await context.closedAhead.close();
    await context.closedMachines.close();
    await context.parts.pool.close();
    for (const box of context.boxes.values()) {
      box.outlet?.close();
      box.guest?.close();
    }
    const logs = [...context.boxes.values()].flatMap((box) =>
      [...box.processes.values()].map((proc) => proc.log),
    );
    await Promise.all(logs.map((log) => log.close()));
    await Promise.all([...context.boxes.values()].map((box) => box.ending));
    await context.cleaned();
    await trialsOver();
  };

  /** A process of a sandbox that lives, whether it has exited or not. */
  async #living(sandboxId: string, processId: string): Promise<Proc> {
    const box: Box = await readyBox(this.#context, sandboxId);
    const proc = box.processes.get(processId);
    if (!proc) throw new CaissonError("PROCESS_NOT_FOUND", "the sandbox has no such process");
    if (box.record.state !== SandboxState.READY) throw box.notReady();
    return proc;
  }

  async #running(sandboxId: string, processId: string): Promise<Proc> {
    const proc = await this.#living(sandboxId, processId);
    if (proc.record.exit) throw new CaissonError("PROCESS_ENDED", "the process has exited");
    return proc;
  }
}

/** Settles as the promise does, or rejects when aborted. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
