import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract/errors";
import { connectSocket } from "../../keeper/connect.ts";
import type { Keeper, Kept } from "../../keeper/index.ts";
import { openSharedSocket } from "../../link/frame/shared-read.ts";
import { describeEnd } from "../describe-end.ts";
import type { Attachment, Launched, LaunchRecord, LaunchSpec, MountSource } from "../driver.ts";
import { bubblewrapArgv } from "./argv.ts";
import { bubblewrapMechanisms } from "./mechanisms.ts";
import type { Ground } from "./probe.ts";

export interface LaunchContext {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  ground: Ground;
}

/** Starts a sandbox under a uid, or as the keeper where that is not root. */
export async function launchBubblewrap(
  context: LaunchContext,
  spec: LaunchSpec,
  uid?: number,
): Promise<Launched> {
  if (spec.image !== "host" && spec.image !== "bare")
    throw new CaissonError("INVALID_INPUT", `the bubblewrap driver has no image "${spec.image}"`);
  const { keeper, guest, ground } = context;
  const socket = `${spec.dir}/link.sock`;
  const log = `${spec.dir}/launch.log`;
  const kept = await keeper.launch({
    sandbox: spec.sandboxId,
    argv: bubblewrapArgv(ground.bwrap, spec.image === "host" ? ground.hostRoot : []),
    env: [],
    socket,
    ...(uid === undefined ? {} : { uid, gid: uid }),
    cgroups: spec.cgroups,
    guest,
    log,
  });
  const record: LaunchRecord = {
    driver: "bubblewrap",
    pid: kept.pid,
    startTime: Number(kept.startTime),
    uid: uid ?? ground.uid,
    gid: uid ?? process.getgid?.() ?? 0,
    socket,
  };
  return new BubblewrapSandbox(keeper, spec.sandboxId, kept, record, uid !== undefined);
}

/** Finds a sandbox again by its record. */
export async function adoptBubblewrap(
  keeper: Keeper,
  sandboxId: string,
  record: LaunchRecord,
): Promise<Launched | undefined> {
  const kept = await keeper.adopt(sandboxId, { pid: record.pid, startTime: BigInt(record.startTime) });
  const hasOwnUid = record.uid !== (await keeper.identity()).uid;
  return kept && new BubblewrapSandbox(keeper, sandboxId, kept, record, hasOwnUid);
}

class BubblewrapSandbox implements Launched {
  readonly record: LaunchRecord;
  readonly ended: Promise<string>;
  readonly #keeper: Keeper;
  readonly #sandboxId: string;
  readonly #hasOwnUid: boolean;

  constructor(keeper: Keeper, sandboxId: string, kept: Kept, record: LaunchRecord, hasOwnUid: boolean) {
    this.#hasOwnUid = hasOwnUid;
    this.record = record;
    this.#keeper = keeper;
    this.#sandboxId = sandboxId;
    this.ended = kept.ended.then((ended) => describeEnd(ended, `${dirname(record.socket)}/launch.log`));
  }

  connect(): Promise<Duplex> {
    return openSharedSocket((onread) => connectSocket(this.record.socket, { onread }));
  }

  kill(): Promise<void> {
    return this.#keeper.kill(this.#sandboxId);
  }

  /** The keeper follows no link. Whether they are still what was meant, the guest compares. */
  attach(sources: MountSource[]): Promise<Attachment[]> {
    const { socket, uid, gid } = this.record;
    return this.#keeper.attach({ socket, sources, ...(this.#hasOwnUid ? { uid, gid } : {}) });
  }

  mechanisms() {
    return bubblewrapMechanisms(this.#hasOwnUid);
  }
}
