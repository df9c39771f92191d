import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract/errors";
import { connectSocket } from "../../keeper/connect.ts";
import type { Keeper, Kept } from "../../keeper/index.ts";
import { openSharedSocket } from "../../link/frame/shared-read.ts";
import type { HostEntry } from "../bubblewrap/host-root.ts";
import { describeEnd } from "../describe-end.ts";
import type { Attachment, Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { untilListening } from "../until-listening.ts";
import { runscArgv } from "./argv.ts";
import { doorOf, writeBundle } from "./bundle.ts";
import { readImageRoot } from "./image-root.ts";
import { runscMechanisms } from "./mechanisms.ts";
import type { Ground } from "./probe.ts";

export interface LaunchContext {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  ground: Ground;
}

/** Starts a sandbox; resolves when its guest listens. */
export async function launchRunsc(context: LaunchContext, spec: LaunchSpec): Promise<Launched> {
  if (spec.image !== "host" && !spec.root)
    throw new CaissonError("INVALID_INPUT", `the runsc driver has no image "${spec.image}"`);
  const { keeper, guest, ground } = context;
  const base = spec.root ? await readImageRoot(spec.root) : ground.hostRoot;
  const shown = [...base, ...(await Promise.all((spec.shown ?? []).map(toEntry)))];
  const bundle = await writeBundle({ dir: spec.dir, guest, shown });
  const state = join(spec.dir, "runsc");
  const { runsc, platform, rootless } = ground;
  const kept = await keeper.launch({
    sandbox: spec.sandboxId,
    argv: runscArgv({ runsc, state, bundle, platform, rootless }, spec.sandboxId),
    env: [],
    // The guest makes its own.
    socket: "",
    cgroups: spec.cgroups,
    guest,
    log: `${spec.dir}/launch.log`,
  });
  const record: LaunchRecord = {
    driver: "runsc",
    pid: kept.pid,
    startTime: Number(kept.startTime),
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    socket: doorOf(spec.dir),
  };
  const launched = new RunscSandbox(keeper, spec.sandboxId, kept, record, ground);
  try {
    await untilListening(launched, "gVisor");
  } catch (error) {
    await launched.kill().catch(() => {});
    throw error;
  }
  return launched;
}

/** Finds a sandbox again by its record. */
export async function adoptRunsc(
  keeper: Keeper,
  sandboxId: string,
  record: LaunchRecord,
  ground: Pick<Ground, "platform" | "rootless">,
): Promise<Launched | undefined> {
  const kept = await keeper.adopt(sandboxId, { pid: record.pid, startTime: BigInt(record.startTime) });
  return kept && new RunscSandbox(keeper, sandboxId, kept, record, ground);
}

async function toEntry(path: string): Promise<HostEntry> {
  return { path, kind: "bind", source: await realpath(path) };
}

class RunscSandbox implements Launched {
  readonly record: LaunchRecord;
  readonly ended: Promise<string>;
  readonly #keeper: Keeper;
  readonly #sandboxId: string;
  readonly #ground: Pick<Ground, "platform" | "rootless">;

  constructor(
    keeper: Keeper,
    sandboxId: string,
    kept: Kept,
    record: LaunchRecord,
    ground: Pick<Ground, "platform" | "rootless">,
  ) {
    this.record = record;
    this.#keeper = keeper;
    this.#sandboxId = sandboxId;
    this.#ground = ground;
    const log = join(dirname(dirname(record.socket)), "launch.log");
    this.ended = kept.ended.then((ended) => describeEnd(ended, log));
  }

  connect(): Promise<Duplex> {
    return openSharedSocket((onread) => connectSocket(this.record.socket, { onread }));
  }

  kill(): Promise<void> {
    return this.#keeper.kill(this.#sandboxId);
  }

  attach(): Promise<Attachment[]> {
    return Promise.reject(new CaissonError("INTERNAL", "gVisor takes no mounts after its start"));
  }

  mechanisms() {
    return runscMechanisms(this.#ground.platform, this.#ground.rootless);
  }
}
