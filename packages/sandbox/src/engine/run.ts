import { create, toJson } from "@bufbuild/protobuf";
import { type CallContext, CommandSchema, SandboxSpecSchema } from "@caisson/contract";
import type { StateChange } from "@caisson/store";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { createBox } from "./create.ts";
import type { CommandInit, RunOptions, SpecInit } from "./engine.ts";
import type { CallResult } from "./idempotency.ts";
import { endBox } from "./lifecycle.ts";
import { prepareCommand } from "./process/command.ts";
import type { Proc } from "./process/proc.ts";
import { startProcess } from "./process/start.ts";
import { openSession } from "./sessions.ts";

type Remember = (result: CallResult) => StateChange[];

/**
 * A fresh sandbox and its command. The command is sent right behind the seal; the guest handles both
 * in order, so nobody waits for an answer in between.
 */
export async function runInFresh(
  context: EngineContext,
  spec: SpecInit,
  command: CommandInit,
  remember: Remember,
  call: CallContext,
): Promise<Proc> {
  let started: Promise<Proc> | undefined;
  const begin = (box: Box) => {
    started = startProcess(
      context,
      box,
      box.guest!,
      command,
      { remember: (processId) => remember({ sandboxId: box.id, processId }), endsSandbox: true },
      call,
    );
    started.catch(() => {});
  };
  // What is wrong with the command shows before a sandbox is made for it.
  prepareCommand(command, { record: { workdir: "/" } });
  const box = await createBox(
    context,
    spec,
    { session: "", wait: true, remember: () => [], sealing: begin },
    call,
  ).catch(async (error) => {
    await started?.catch(() => {});
    throw error;
  });
  try {
    return await started!;
  } catch (error) {
    await endBox(context, box, "start_failed", "its command could not be started", call.actor);
    throw error;
  }
}

/** In the sandbox of a session, which stays. */
export async function runInSession(
  context: EngineContext,
  session: string,
  spec: SpecInit,
  command: CommandInit,
  remember: Remember,
  call: CallContext,
): Promise<Proc> {
  const { box } = await openSession(context, session, spec, call);
  return startProcess(
    context,
    box,
    box.livingGuest(),
    command,
    { remember: (processId) => remember({ sandboxId: box.id, processId }), endsSandbox: false },
    call,
  );
}

/** The request as JSON, to compare with an earlier one under the same key. */
export function runRequest(spec: SpecInit, command: CommandInit, options: RunOptions): unknown {
  return [
    toJson(SandboxSpecSchema, create(SandboxSpecSchema, spec)),
    toJson(CommandSchema, create(CommandSchema, command)),
    options.session ?? "",
  ];
}
