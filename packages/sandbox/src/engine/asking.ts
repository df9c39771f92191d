// What the engine itself asks for.
import { CaissonError, type CallContext } from "@caisson/contract";
import type { EngineContext } from "./context.ts";
import type { SandboxRecord } from "./records.ts";

type Asker = Pick<CallContext, "actor" | "signal" | "mayApprove">;

/** Throws unless the agent may have this profile instead of the one that its rule gives. */
export async function askForProfile(
  context: EngineContext,
  [agent, profile, ruled]: [agent: string, profile: string, ruled: string],
  call: Asker,
): Promise<void> {
  const { allow, by } = await context.approvals.ask({
    kind: "profile",
    subject: profile,
    sandboxId: "",
    agent,
    reason: `the rule for ${agent} gives the profile ${ruled}`,
    by: call.actor,
    signal: call.signal,
  });
  if (!allow) throw denied(`the profile ${profile}, where the rule for ${agent} gives ${ruled}`, by);
}

/** Changes reach the host's files: who may not answer for that has to ask, where the configuration says so. */
export async function askForApply(
  context: EngineContext,
  record: SandboxRecord,
  paths: readonly string[],
  call: Asker,
): Promise<void> {
  if (mayApprove(call) || !context.approvals.asksFor("apply")) return;
  const what = paths.length === 0 ? "everything that is not withheld" : paths.join(", ");
  const { allow, by } = await context.approvals.ask({
    kind: "apply",
    subject: record.workspace.dir,
    sandboxId: record.id,
    agent: record.agent,
    reason: `${call.actor} wants to apply ${what}`,
    by: call.actor,
    signal: call.signal,
  });
  if (!allow) throw denied("applying these changes", by);
}

/** A writable bind is an apply of everything in advance. */
export async function askForWritableBind(
  context: EngineContext,
  [dir, agent]: [dir: string, agent: string],
  call: Asker,
): Promise<void> {
  if (mayApprove(call) || !context.approvals.asksFor("apply")) return;
  const { allow, by } = await context.approvals.ask({
    kind: "apply",
    subject: dir,
    sandboxId: "",
    agent,
    reason: `${call.actor} wants a sandbox that writes the project itself`,
    by: call.actor,
    signal: call.signal,
  });
  if (!allow) throw denied("a sandbox that writes the project itself", by);
}

/** The owner of the machine's socket answers for everything. */
function mayApprove(call: Asker): boolean {
  return call.mayApprove ?? call.actor.startsWith("uid:");
}

function denied(what: string, by: string): CaissonError {
  return new CaissonError(
    "APPROVAL_DENIED",
    `${what} was refused${by ? ` by ${by}` : ": nobody answered in time"}`,
  );
}
