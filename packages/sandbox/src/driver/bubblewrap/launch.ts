import { open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract/errors";
import type { Ended } from "@caisson/contract/keeper";
import { connectSocket } from "../../keeper/connect.ts";
import type { Keeper, Kept } from "../../keeper/index.ts";
import { openSharedSocket } from "../../link/frame/shared-read.ts";
import type { Attachment, Launched, LaunchRecord, LaunchSpec, MountSource } from "../driver.ts";
import { bubblewrapArgv } from "./argv.ts";
import { bubblewrapMechanisms } from "./mechanisms.ts";
import type { Ground } from "./probe.ts";

/** What the launch log may add to a sentence. */
const quotedLogBytes = 400;

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
    this.ended = kept.ended.then((ended) => describeEnd(ended, record.socket));
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

/** The guest's steps, by the code that it exits with when one fails (spec/link.md). */
const steps = new Map([
  [70, "its start"],
  [71, "mounts"],
  [72, "network"],
  [73, "descriptors"],
  [74, "user namespaces"],
  [75, "identity"],
  [76, "capabilities"],
  [77, "privileges"],
  [78, "Landlock"],
  [79, "seccomp"],
  [80, "its check of itself"],
]);

/** One sentence for people: how it ended, and the last words where there were some. */
async function describeEnd(
  { code, signal }: Pick<Ended, "code" | "signal">,
  socket: string,
): Promise<string> {
  if (signal !== 0) return `the sandbox's outer process was killed by signal ${signal}`;
  if (code === 0) return "the guest left by itself";
  if (code < 0) return "the sandbox is gone";
  // Bubblewrap passes on its child's signal as shells do.
  if (code > 128) return `the guest was killed by signal ${code - 128}`;
  const step = steps.get(code);
  const words = await readLog(`${dirname(socket)}/launch.log`);
  const ended = step === undefined ? `the sandbox ended with code ${code}` : `the guest failed at ${step}`;
  return words === "" ? ended : `${ended}: ${words}`;
}

/** The log's end without the keeper's own line; read in a bounded way. */
async function readLog(path: string): Promise<string> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(quotedLogBytes),
      position: Math.max(0, size - quotedLogBytes),
    });
    return buffer
      .toString("utf8", 0, bytesRead)
      .replace(/^launched [0-9]+ [0-9]+\n/, "")
      .replace(/[\p{Cc}\s]+/gu, " ")
      .trim();
  } catch {
    return "";
  }
}
