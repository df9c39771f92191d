import { CaissonError } from "@caisson/contract/errors";
import { rules } from "@caisson/contract/rules";
import type { Caller } from "../call/caller.ts";
import type { OnceOptions } from "../call/options.ts";
import { type CommandOptions, commandInit, exitFrom } from "../values/process.ts";
import { type SandboxSpec, specInit } from "../values/sandbox.ts";
import { type Result, ResultCollector } from "./result.ts";
import { Run } from "./run.ts";
import { placeStdin, type StdinSource } from "./stdin.ts";

export interface ExecOptions extends CommandOptions, OnceOptions {
  /** What the command reads. Default: nothing. */
  stdin?: StdinSource | undefined;
  /** Leave the input open for `run.stdin`. Default: false. */
  openStdin?: boolean | undefined;
}

/** Where a command runs: a sandbox that is there, or a spec or session of which one is made. */
export type Place = { sandboxId: string } | { spec: SandboxSpec; session: string };

/** Starts a command; the handle is there once it runs. */
export async function startCommand(
  caller: Caller,
  place: Place,
  argv: string[],
  options: ExecOptions = {},
): Promise<Run> {
  const { inline, later } = placeStdin(options.stdin);
  const keep = later !== undefined || (options.openStdin ?? false);
  const command = commandInit(argv, options, { bytes: keep ? undefined : inline, keep });
  const idempotencyKey = caller.key(options);
  const run = await Run.start(
    caller,
    "sandboxId" in place
      ? () =>
          caller.stream(
            (c) => c.ProcessService.method.startProcess,
            { sandboxId: place.sandboxId, idempotencyKey, command },
            options,
          )
      : () =>
          caller.stream(
            (c) => c.RunService.method.runStream,
            { spec: specInit(place.spec), session: place.session, idempotencyKey, command },
            options,
          ),
    options,
  );
  if (keep && inline) await run.stdin.write(inline, options);
  // A command may stop reading, or end, whenever it likes: that is no error of the one who feeds it.
  if (later !== undefined) run.stdin.pipe(later, options).catch(() => {});
  return run;
}

/** Runs a command to its end in one call. */
export async function runCommand(
  caller: Caller,
  place: Place,
  argv: string[],
  options: ExecOptions = {},
): Promise<Result> {
  const { inline, later } = placeStdin(options.stdin);
  if (later !== undefined || options.openStdin) {
    return (await startCommand(caller, place, argv, options)).result(options);
  }
  const command = commandInit(argv, options, { bytes: inline, keep: false });
  const key = caller.key(options);
  const attempts = { key, attemptTimeout: attemptTimeoutOf(options) };
  const answers =
    "sandboxId" in place
      ? await caller.collect(
          (c) => c.ProcessService.method.exec,
          { sandboxId: place.sandboxId, idempotencyKey: key, command },
          options,
          attempts,
        )
      : await caller.collect(
          (c) => c.RunService.method.run,
          { spec: specInit(place.spec), session: place.session, idempotencyKey: key, command },
          options,
          attempts,
        );
  return gather(answers, "sandboxId" in place ? place.sandboxId : "");
}

type Answer = {
  sandboxId?: string;
  processId: string;
  stdout?: { data: Uint8Array } | undefined;
  stderr?: { data: Uint8Array } | undefined;
  exit?: Parameters<typeof exitFrom>[0] | undefined;
};

function gather(answers: Answer[], sandboxId: string): Result {
  const collected = new ResultCollector();
  let processId = "";
  for (const answer of answers) {
    processId ||= answer.processId;
    sandboxId ||= answer.sandboxId ?? "";
    if (answer.stdout) collected.add("stdout", answer.stdout.data);
    if (answer.stderr) collected.add("stderr", answer.stderr.data);
  }
  const exit = answers.at(-1)?.exit;
  if (!exit) throw new CaissonError("INTERNAL", "the server answered without the exit");
  return collected.finish(exitFrom(exit), { sandboxId, processId });
}

/** A command's own time bounds an attempt at it; without one it may take as long as it likes. */
function attemptTimeoutOf({ timeout, grace }: ExecOptions): number | "none" {
  if (!timeout) return "none";
  return timeout + (grace ?? rules.times.exec_grace_ms) + rules.retry.attempt_timeout_ms;
}
