// What the engine itself asks for.
import { join } from "node:path";
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

/**
 * The names among `paths` whose changes may go where they would act outside the project. Each that would be withheld otherwise is asked
 * for, by who may not answer for it, where the configuration says so; a refusal leaves it withheld.
 */
export async function askForProtected(
  context: EngineContext,
  record: SandboxRecord,
  { paths, withheld }: { paths: readonly string[]; withheld(): AsyncIterable<{ path: string; why: string }> },
  call: Asker,
): Promise<readonly string[]> {
  if (paths.length === 0 || mayApprove(call) || !context.approvals.asksFor("write-outside")) return paths;
  const allowed = new Set<string>();
  for await (const { path, why } of withheld()) {
    if (!paths.includes(path)) continue;
    const { allow } = await context.approvals.ask({
      kind: "write-outside",
      subject: join(record.workspace.dir, path),
      sandboxId: record.id,
      agent: record.agent,
      reason: `${call.actor} wants to apply what is withheld: ${why}`,
      by: call.actor,
      signal: call.signal,
    });
    if (allow) allowed.add(path);
  }
  return [...allowed];
}

/** A writable bind is an apply of everything in advance, of what would be withheld too. */
export async function askForWritableBind(
  context: EngineContext,
  [dir, agent]: [dir: string, agent: string],
  call: Asker,
): Promise<void> {
  const kind = (["write-outside", "apply"] as const).find((one) => context.approvals.asksFor(one));
  if (mayApprove(call) || !kind) return;
  const { allow, by } = await context.approvals.ask({
    kind,
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
