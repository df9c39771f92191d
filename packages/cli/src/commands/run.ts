import { CaissonError, type ExecOptions, type Run, type SandboxSpec } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import type { OptionTable } from "../command/option.ts";
import { UsageError } from "../command/usage-error.ts";
import { Asking } from "../work/asking.ts";
import { commandOptions, execOptions } from "../work/command-options.ts";
import { tellPreparing } from "../work/preparing.ts";
import { resultJson } from "../work/result-json.ts";
import { applyChanges, hintAtChanges } from "../work/settle-changes.ts";
import { type ChosenSpec, specFrom, specOptions } from "../work/spec-options.ts";
import { reportExit, Wire } from "../work/wire.ts";

const options = {
  session: { kind: "text", short: "s", value: "NAME", summary: "Run in this session's sandbox, which stays" },
  keep: { kind: "flag", summary: "Keep the sandbox when the command has ended" },
  write: { kind: "flag", summary: "Apply what it changed in the project when it has ended" },
  ...commandOptions,
  ...specOptions,
} as const satisfies OptionTable;

export const command = defineCommand({
  name: "run",
  summary: "Run a command in a fresh sandbox that ends with it",
  details:
    "The current directory is attached as an overlay: the command sees the project at its own path, and its\n" +
    "writes stay aside for a day: `caisson diff`, `apply` and `discard` see to them. Standard input is passed on\n" +
    "when it is a pipe or a file.",
  positionals: [{ name: "COMMAND", summary: "Program and arguments", rest: true, command: true }],
  options,
  examples: [
    { line: "caisson run -- npm test", what: "Run the tests of this project, sealed off" },
    { line: "caisson run --session work -- make", what: "Share one sandbox between commands" },
    { line: "caisson run -it --no-workspace -- bash", what: "An interactive shell that sees no project" },
    { line: "caisson run --timeout 30s --memory 512m -- ./build.sh", what: "With bounds" },
    { line: "echo hello | caisson run -- cat", what: "In a pipe" },
  ],
  runsCommands: true,
  async run(call) {
    const { options: values, positionals: argv, io, client, host, print } = call;
    const chosen = specFrom(values, io, host);
    if (values.write) checkWrite(values.detach, chosen.spec);
    const exec = await execOptions(values, argv, io);
    if (chosen.note) await print.note(chosen.note);
    if (values.detach) return detached(call, chosen, exec);
    const attaches = chosen.spec.workspace !== undefined && !values.session;
    const wiring = { stdin: exec.openStdin ?? false, terminal: values.tty, owned: true };
    const wire = new Wire(io, wiring);
    const asking = new Asking(io, client, wiring);
    try {
      const { agent, profile } = chosen.spec;
      // Another profile than the agent's rule gives is asked for before there is a sandbox.
      if (agent && profile)
        asking.show({
          wanted: (asked) => asked.kind === "profile" && asked.agent === agent && asked.subject === profile,
        });
      const start = await tellPreparing(io, client, wire.start(started(call, chosen, exec)));
      if ("code" in start) return start.code;
      const { run } = start;
      asking.show({ sandboxId: run.sandboxId });
      if (values.json) {
        const result = await wire.during(run, () => run.result());
        const applied = values.write ? await client.sandboxes.at(run.sandboxId).workspace.apply() : undefined;
        await print.json({ ...resultJson(result), applied });
        return result.code & 255;
      }
      const exit = await wire.relay(run);
      if (values.keep && !values.session) await print.note(`kept ${run.sandboxId}`);
      if (values.write) await applyChanges(call, run.sandboxId);
      else if (exit.projectTouched || (attaches && (exit.lost || values.keep)))
        await hintAtChanges(call, run.sandboxId);
      return await reportExit(io, exit);
    } finally {
      asking.stop();
      wire.close();
    }
  },
});

type RunCall = Call<typeof options>;

function checkWrite(detach: boolean, { workspace }: SandboxSpec): void {
  if (detach) throw new UsageError("--write has to wait for the command, so it does not go with --detach");
  const mode = workspace && (workspace.mode ?? "overlay");
  if (mode !== "overlay" && mode !== "copy")
    throw new UsageError("--write needs a project that is attached as an overlay or a copy");
}

/** Starts the command. A default that does not fit gives way; what was asked for does not. */
async function started(call: RunCall, chosen: ChosenSpec, exec: ExecOptions): Promise<Run> {
  try {
    return await begin(call, chosen.spec, exec);
  } catch (thrown) {
    const { code, message } = CaissonError.from(thrown);
    if (!chosen.workspaceIsDefault) throw thrown;
    if (code === "WORKSPACE_REFUSED") {
      await call.print.note(`no project is attached: ${message}`);
      const { workspace: _, ...spec } = chosen.spec;
      return begin(call, spec, exec);
    }
    // A living session keeps the project it was made with; the command still starts where the caller is.
    if (code === "SESSION_CONFLICT" && Object.keys(chosen.spec).length === 1) {
      return begin(call, {}, { ...exec, cwd: exec.cwd ?? call.io.cwd });
    }
    throw thrown;
  }
}

async function begin(call: RunCall, spec: SandboxSpec, exec: ExecOptions): Promise<Run> {
  const { client, options: values, positionals: argv } = call;
  if (values.session || !stays(call)) {
    // Without a key a caller that goes away, in whatever way, takes the sandbox with it.
    return client.exec(argv, { ...exec, spec, session: values.session, idempotencyKey: "" });
  }
  const box = await client.create(spec);
  try {
    return await box.exec(argv, exec);
  } catch (thrown) {
    await box.delete();
    throw thrown;
  }
}

/** A command that nobody waits for keeps its sandbox until it is idle or removed. */
function stays({ options: { keep, detach } }: RunCall): boolean {
  return keep || detach;
}

async function detached(call: RunCall, chosen: ChosenSpec, exec: ExecOptions): Promise<number> {
  const run = await started(call, chosen, exec);
  await run.detach();
  if (call.options.json) await call.print.json({ sandboxId: run.sandboxId, processId: run.id });
  else await call.print.line(`${run.sandboxId} ${run.id}`);
  return 0;
}
