import { readFileSync } from "node:fs";
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import type { Launched, LaunchRecord, LaunchSpec } from "../driver.ts";
import { untilListening } from "../until-listening.ts";
import type { Engine } from "./api.ts";
import { containerBody, doorOf, labels, type Ulimit } from "./container.ts";
import type { Ground } from "./probe.ts";
import { isAlive, joinGroups, startTimeOf } from "./processes.ts";
import { DockerSandbox, type SandboxContext } from "./sandbox.ts";
import { seccompProfile } from "./seccomp.ts";

export interface LaunchContext {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** The daemon's data directory. */
  directory: string;
  /** Marks of containers: of that directory, and of this daemon. */
  home: string;
  daemon: string;
  /** Told of a container that the engine could not remove; it is removed when the engine answers again. */
  leave(container: string): void;
  ground: Ground;
}

/** Starts a sandbox under a uid, or as the daemon where that is not root; resolves when its guest listens. */
export async function startContainer(
  context: LaunchContext,
  spec: LaunchSpec,
  uid?: number,
): Promise<DockerSandbox> {
  if (spec.image !== "host" && spec.image !== "bare")
    throw new CaissonError("INVALID_INPUT", `the docker driver has no image "${spec.image}"`);
  const { ground, guest } = context;
  const owner = { uid: uid ?? process.getuid?.() ?? 0, gid: uid ?? process.getgid?.() ?? 0 };
  const door = `${spec.dir}/door`;
  await mkdir(door, { mode: 0o700 });
  if (uid !== undefined) await chown(door, owner.uid, owner.gid);
  const body = containerBody({
    ...ground,
    ...owner,
    dir: spec.dir,
    guest,
    limits: spec.limits,
    ulimits: ground.isPodman ? ownUlimits() : [ulimit("core", noCore)],
    seccomp: await seccompOption(ground, spec.dir),
    ...(spec.image === "host" ? {} : { hostRoot: [], image: ground.bareImage }),
    labels: {
      [labels.home]: context.home,
      [labels.sandbox]: spec.sandboxId,
      [labels.daemon]: context.daemon,
    },
  });
  const container = await create(ground.engine, spec.sandboxId, body);
  try {
    await ground.engine.call({ method: "POST", path: `/containers/${container}/start` });
    const pid = await pidOf(ground.engine, container);
    const record: LaunchRecord = {
      driver: "docker",
      pid: pid ?? 0,
      startTime: startTimeOf(pid ?? 0) ?? 0,
      ...owner,
      socket: doorOf(spec.dir),
      container,
      engine: ground.engine.socket,
      bounded: spec.limits !== undefined,
    };
    const launched = new DockerSandbox({ ...context, ...ground }, record);
    await untilListening(launched, "the container");
    joinGroups(record.pid, spec.cgroups);
    return launched;
  } catch (error) {
    if (!(await remove(ground.engine, container))) context.leave(container);
    throw error;
  }
}

/** Podman's service takes no more processes for itself than a kernel has numbers for by default. */
const maxProcesses = 32_768;

/** No core, not even for a program that the host runs on crashes, which the kernel does at a limit of 0. */
const noCore = 1;

/** Podman asks for as much as a kernel gives, which fails where root may not raise its limits: no more than ours. */
function ownUlimits(): Ulimit[] {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const hard = (name: string) => Number(new RegExp(`^Max ${name} +\\d+ +(\\d+) `, "m").exec(limits)?.[1]);
  return [
    ulimit("core", hard("core file size") === 0 ? 0 : noCore),
    ...Object.entries({ nofile: hard("open files"), nproc: Math.min(hard("processes"), maxProcesses) })
      .filter(([, value]) => value > 0)
      .map(([name, value]) => ulimit(name, value)),
  ];
}

function ulimit(Name: string, value: number): Ulimit {
  return { Name, Soft: value, Hard: value };
}

/** Docker's clients send the filter itself; Podman reads a file. */
async function seccompOption({ isPodman }: Ground, dir: string): Promise<string> {
  if (!isPodman) return seccompProfile();
  const file = join(dir, "seccomp.json");
  await writeFile(file, seccompProfile(), { mode: 0o600 });
  return file;
}

/** Finds a sandbox again by its record. It lives on while its engine is away. */
export async function adoptContainer(
  context: Omit<SandboxContext, "hasAppArmor" | "isPodman">,
  record: LaunchRecord,
): Promise<Launched | undefined> {
  const { container, pid, startTime } = record;
  if (!container) return undefined;
  const livesNow = isAlive(pid, startTime);
  // Its engine ends it before it tells us; what it has to tell is that of the record's own process only.
  if (livesNow && (await isOf(context.engine, container, pid)))
    return new DockerSandbox({ ...context, hasAppArmor: false, isPodman: false }, record);
  if (!(await remove(context.engine, container))) context.leave(container);
  return undefined;
}

/** Is that the container's process? Without an engine nobody can say otherwise. */
async function isOf(engine: Engine, container: string, pid: number): Promise<boolean> {
  try {
    return (await pidOf(engine, container)) === pid;
  } catch {
    return true;
  }
}

/** Ends and removes a container; one that is not there is removed already. False: the engine did not do it. */
export async function remove(engine: Engine, container: string): Promise<boolean> {
  const query = { force: "1", v: "1" };
  const path = `/containers/${container}`;
  return engine.call({ method: "DELETE", path, query, accept: [404, 409] }).then(
    () => true,
    () => false,
  );
}

async function create(engine: Engine, sandboxId: string, body: object): Promise<string> {
  const query = { name: `caisson-${sandboxId}` };
  const answer = await engine.call({ method: "POST", path: "/containers/create", query, body });
  const { Id } = answer.body as { Id?: unknown };
  if (typeof Id === "string" && /^[0-9a-f]{12,64}$/.test(Id)) return Id;
  throw new CaissonError("SANDBOX_FAILED", "the Docker engine gave no id for a container");
}

/** Of a running container. */
async function pidOf(engine: Engine, container: string): Promise<number | undefined> {
  const call = { method: "GET" as const, path: `/containers/${container}/json`, accept: [404] };
  const { body } = await engine.call(call);
  const state = (body as { State?: { Running?: unknown; Pid?: unknown } } | undefined)?.State;
  return state?.Running === true && typeof state.Pid === "number" ? state.Pid : undefined;
}
