import { constants } from "node:os";
import { CaissonError, type CallContext } from "@caisson/contract";
import type { Exited } from "@caisson/contract/link";
import { type StateChange, soonMs } from "@caisson/store";
import type { Guest } from "../../link/guest.ts";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import type { CommandInit } from "../engine.ts";
import { endBox } from "../lifecycle.ts";
import { kinds, type ProcessRecord } from "../records.ts";
import { type PreparedCommand, prepareCommand, startOf } from "./command.ts";
import { exitRecord } from "./exit.ts";
import { logOf } from "./output.ts";
import { Proc } from "./proc.ts";

const { SIGKILL } = constants.signals;
/** Most commands have exited by then: their start and their exit go into one transaction. */
const shortlyMs = 3;
/** Exited processes whose records a living sandbox keeps; the oldest go first. */
const keptProcesses = 1000;

export interface StartRequest {
  /** Stored in the transaction that records the process. */
  remember(processId: string): StateChange[];
  /** The sandbox ends when the process has exited. */
  endsSandbox: boolean;
}

/**
 * Starts a command; resolves when it runs and its record is on disk, or it has exited. The record is made while the
 * guest starts it. A key is handed to the operating system first: a daemon that dies right after the
 * start must know of it, so that a repeated call does not run the command again.
 */
export async function startProcess(
  context: EngineContext,
  box: Box,
  guest: Guest,
  init: CommandInit,
  request: StartRequest,
  call: CallContext,
): Promise<Proc> {
  if (box.record.paused) throw new CaissonError("SANDBOX_PAUSED", "the sandbox is paused: resume it first");
  const prepared = prepareCommand(init, box);
  const proc = newProc(context, box, guest, prepared, call.actor);
  if (request.endsSandbox) box.record.runs = proc.id;
  const remembered = request.remember(proc.id);
  const { stdin } = prepared.command;
  const record = (): Promise<unknown> => {
    const recorded = context.commit(
      [],
      [
        proc.put(),
        ...(request.endsSandbox ? [box.put()] : []),
        ...remembered,
        ...(stdin.length > 0
          ? [{ put: kinds.stdin, key: proc.key, value: Buffer.from(stdin).toString("base64") }]
          : []),
      ],
      // A sandbox that is being closed for it flushes this when it is ready.
      { withinMs: request.endsSandbox ? soonMs : shortlyMs },
    );
    recorded.catch(() => {});
    return recorded;
  };
  try {
    const before = remembered.length > 0 ? record() : undefined;
    if (before && !context.store.flush()) await before;
    const started = guest.start(startOf(prepared, proc.record.stream, box, call.traceparent), proc.log);
    started.catch(() => {});
    const recorded = before ?? record();
    if (stdin.length > 0) feedStdin(proc, guest, stdin);
    // While the guest works, and before its next word is read: an exit that is told has a record to belong to.
    if (!request.endsSandbox) setImmediate(() => context.store.flush());
    await started;
    const announcement = proc.announced();
    if (announcement.length > 0) void context.commitSurely(announcement, [proc.put()]);
    // An exit is told at once, and says more than that there was a start.
    await Promise.race([recorded, proc.exited.promise]);
    return proc;
  } catch (error) {
    // It may run although it could not be recorded; where it does not, there is nothing to end.
    guest.signal(proc.record.stream, SIGKILL, true).catch(() => {});
    dropProcess(context, proc, { error, remembered, actor: call.actor });
    throw error;
  }
}

function newProc(
  context: EngineContext,
  box: Box,
  guest: Guest,
  { command, cwd }: PreparedCommand,
  actor: string,
): Proc {
  const record: ProcessRecord = {
    id: `p${++box.record.lastProcess}`,
    sandboxId: box.id,
    stream: guest.nextStream(),
    argv: command.argv,
    cwd,
    hasTerminal: command.terminal !== undefined,
    keepStdin: command.keepStdin,
    actor,
    announced: false,
    startedAt: Date.now(),
    endedAt: 0,
    exit: undefined,
    seq: 0,
    firstKeptSeq: 0,
  };
  const proc = new Proc(box, record);
  proc.log = logOf(context, proc, (exited) => processExited(context, proc, exited));
  proc.oomBefore = box.oomSeen;
  proc.release = box.use();
  box.processes.set(proc.id, proc);
  return proc;
}

/** Gives a process the input that it was started with; it may exit without reading it. */
export function feedStdin(proc: Proc, guest: Guest, stdin: Uint8Array): void {
  proc.stdinOffset += stdin.length;
  proc.stdinChain = guest.writeStdin(proc.record.stream, stdin).catch(() => {});
  if (!proc.record.keepStdin) guest.endStdin(proc.record.stream);
}

/** Told by the link, once, when everything that the process wrote is stored. */
export function processExited(context: EngineContext, proc: Proc, exited: Exited): void {
  const { box } = proc;
  if (proc.dropped) {
    box.guest?.forget(proc.record.stream);
    return;
  }
  if (!proc.finish(exitRecord(context, proc, exited))) return;
  if (proc.record.exit!.oomKilled) box.oomSeen++;
  // Whoever waits for the exit is told first: the guest tells it again to the next daemon until it is on disk here.
  proc.settle = () => {
    proc.settle = undefined;
    recordExit(context, proc);
  };
  setImmediate(() => proc.settle?.());
}

function recordExit(context: EngineContext, proc: Proc): void {
  const { box } = proc;
  const exit = proc.record.exit!;
  const drops = dropOldProcesses(box);
  const recorded = context.commitSurely(
    proc.announced({
      type: "process.exited",
      actor: "daemon",
      sandboxId: box.id,
      processId: proc.id,
      data: {
        code: exit.code,
        ...(exit.signal ? { signal: exit.signal } : {}),
        ...(exit.timedOut ? { timed_out: true } : {}),
        ...(exit.oomKilled ? { oom_killed: true } : {}),
        ...(exit.diskExceeded ? { disk_exceeded: true } : {}),
      },
    }),
    [proc.put(), { remove: kinds.stdin, key: proc.key }, ...drops.changes],
  );
  void recorded.then(() => box.guest?.forget(proc.record.stream));
  if (box.record.runs === proc.id) void endRun(context, box, recorded);
  for (const old of drops.procs) void old.log.close();
}

/** The guest is about to go: what it told must survive the daemon's death before that. */
async function endRun(context: EngineContext, box: Box, recorded: Promise<void>): Promise<void> {
  await box.ready.promise.catch(() => {});
  if (!context.store.flush()) await recorded;
  await endBox(context, box, "run_finished", "", "daemon");
}

/** The command could not be started: nothing of it stays but an event, so that the same call may try again. */
function dropProcess(
  context: EngineContext,
  proc: Proc,
  failed: { error: unknown; remembered: StateChange[]; actor: string },
): void {
  // The sandbox has ended meanwhile and has told of it.
  if (proc.record.exit) return;
  proc.dropped = true;
  proc.release?.();
  proc.box.processes.delete(proc.id);
  if (proc.box.record.runs === proc.id) proc.box.record.runs = "";
  void context.commitSurely(
    [
      {
        type: "process.failed",
        actor: failed.actor,
        sandboxId: proc.box.id,
        processId: proc.id,
        data: { code: CaissonError.from(failed.error).code, executable: proc.record.argv[0] ?? "" },
      },
    ],
    [
      { remove: kinds.process, key: proc.key },
      { remove: kinds.stdin, key: proc.key },
      ...failed.remembered.flatMap((change) =>
        "put" in change ? [{ remove: change.put, key: change.key }] : [],
      ),
    ],
  );
}

function dropOldProcesses(box: Box): { procs: Proc[]; changes: StateChange[] } {
  const procs: Proc[] = [];
  for (const proc of box.processes.values()) {
    if (box.processes.size - procs.length <= keptProcesses) break;
    if (proc.record.exit) procs.push(proc);
  }
  for (const proc of procs) box.processes.delete(proc.id);
  const changes = procs.flatMap((proc): StateChange[] => [
    { remove: kinds.process, key: proc.key },
    { remove: kinds.output, key: proc.key },
  ]);
  return { procs, changes };
}
