import {
  CaissonError,
  type CallContext,
  type Process,
  type ProcessEvent,
  type RunRequest,
  RunService,
  type RunStreamRequest,
  type ServedService,
  serve,
} from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import type { Log } from "../deps.ts";
import { checkCommand, checkKey, checkSessionName, checkSpec } from "./check.ts";
import { collectOutput } from "./output.ts";

export function runService(engine: Engine, log: Log): ServedService {
  return serve(RunService, {
    async *run(request, call) {
      const process = await begin(engine, request, call);
      const ids = { sandboxId: process.sandboxId, processId: process.id };
      for await (const part of collectOutput(follow(engine, log, process, request, call)))
        yield { ...ids, ...part };
    },
    async *runStream(request, call) {
      const process = await begin(engine, request, call);
      for await (const event of follow(engine, log, process, request, call)) yield { event };
    },
  });
}

async function begin(
  engine: Engine,
  request: RunRequest | RunStreamRequest,
  call: CallContext,
): Promise<Process> {
  const command = checkCommand(request.command);
  const session = request.session === "" ? {} : { session: checkSessionName(request.session) };
  return await engine.run(
    checkSpec(request.spec),
    command,
    { key: checkKey(request.idempotencyKey), ...session },
    call,
  );
}

/** The process's events. A caller that leaves without a way to come back takes the sandbox with it. */
async function* follow(
  engine: Engine,
  log: Log,
  process: Process,
  request: RunRequest | RunStreamRequest,
  call: CallContext,
): AsyncGenerator<ProcessEvent> {
  let exited = false;
  try {
    const options = { from: 0n, follow: true, signal: call.signal, hold: true };
    for await (const event of engine.attach(process.sandboxId, process.id, options)) {
      exited = event.event.case === "exit";
      yield event;
    }
  } finally {
    const canReturn = request.idempotencyKey !== "" || request.session !== "";
    if (!exited && !canReturn) void abandon(engine, log, process, call);
  }
}

async function abandon(engine: Engine, log: Log, process: Process, call: CallContext): Promise<void> {
  try {
    await engine.end(process.sandboxId, { reason: "run_finished", forget: false }, call);
  } catch (thrown) {
    const error = CaissonError.from(thrown);
    if (error.code === "SANDBOX_ENDED" || error.code === "SANDBOX_NOT_FOUND") return;
    log("error", "an abandoned run's sandbox could not be ended", { sandbox: process.sandboxId, error });
  }
}
