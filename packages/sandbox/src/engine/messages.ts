import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Enforcement,
  type Exit,
  ExitSchema,
  type Process,
  ProcessSchema,
  type Sandbox,
  SandboxSchema,
} from "@caisson/contract";
import { toNetwork } from "./network/record.ts";
import type { ExitRecord, ProcessRecord, SandboxRecord } from "./records.ts";

/** A record as the contract shows it. */
export function toSandbox(
  record: SandboxRecord,
  enforced: Enforcement | undefined,
  extra: { seq: number; expiresAt: number },
): Sandbox {
  return create(SandboxSchema, {
    id: record.id,
    session: record.session,
    state: record.state,
    endReason: record.endReason,
    endMessage: record.endMessage,
    tier: record.tier,
    driver: record.driver,
    profile: record.profile,
    image: record.image,
    workspace: { dir: record.workspace.dir, mode: record.workspace.mode },
    workdir: record.workdir,
    labels: record.labels,
    ...(enforced ? { enforced } : {}),
    ...time("createdAt", record.createdAt),
    ...time("readyAt", record.readyAt),
    ...time("endedAt", record.endedAt),
    ...time("expiresAt", extra.expiresAt),
    seq: BigInt(extra.seq),
    agent: record.agent,
    paused: record.paused ?? false,
    ...(record.network ? { network: toNetwork(record.network) } : {}),
  });
}

export function toProcess(
  record: ProcessRecord,
  enforced: Enforcement | undefined,
  numbers: { seq: number; firstKeptSeq: number },
): Process {
  return create(ProcessSchema, {
    id: record.id,
    sandboxId: record.sandboxId,
    argv: record.argv,
    cwd: record.cwd,
    ...time("startedAt", record.startedAt),
    ...time("endedAt", record.endedAt),
    ...(record.exit ? { exit: toExit(record.exit, enforced) } : {}),
    hasTerminal: record.hasTerminal,
    seq: BigInt(numbers.seq),
    firstKeptSeq: BigInt(numbers.firstKeptSeq),
  });
}

export function toExit(exit: ExitRecord, enforced: Enforcement | undefined): Exit {
  return create(ExitSchema, {
    code: exit.code,
    signal: exit.signal,
    timedOut: exit.timedOut,
    oomKilled: exit.oomKilled,
    diskExceeded: exit.diskExceeded ?? false,
    projectTouched: exit.projectTouched ?? false,
    truncated: exit.truncated,
    durationMs: exit.durationMs,
    usage: { userMs: exit.userMs, systemMs: exit.systemMs, maxRssBytes: BigInt(exit.maxRssBytes) },
    ...(enforced ? { enforced } : {}),
    lost: exit.lost,
  });
}

function time<K extends string>(key: K, ms: number): { [k in K]?: ReturnType<typeof timestampFromMs> } {
  return ms > 0 ? ({ [key]: timestampFromMs(ms) } as { [k in K]: ReturnType<typeof timestampFromMs> }) : {};
}
