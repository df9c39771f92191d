// A container engine of an account's own, for which nobody needs root; nothing of it is the machine's.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Account, temporaryDirectory } from "./daemon.ts";
import { containersOf, mountsBelow, type TestEngine } from "./dockerd.ts";
import { killAllOf } from "./kill.ts";
import { removeTree } from "./remove-tree.ts";

export type OwnEngine = Pick<TestEngine, "socket" | "env"> & AsyncDisposable;

/** Whether this machine has the programs, and numbers for the users of an ordinary user's containers. */
export function canHaveOwn(account: Account, programs: readonly string[]): boolean {
  if (spawnSync("which", ["newuidmap", ...programs]).status !== 0) return false;
  const numbers = existsSync("/etc/subuid") ? readFileSync("/etc/subuid", "utf8") : "";
  const owners = numbers.split("\n").map((line) => line.split(":")[0]);
  return account.uid === 0 || owners.some((owner) => owner === account.name || owner === String(account.uid));
}

/** Starts it by the command that is given its directory and the path of its socket. */
export async function startOwn(
  account: Account,
  name: string,
  command: (dir: string, socket: string) => readonly [string, ...string[]],
): Promise<OwnEngine> {
  const dir = temporaryDirectory(account, `caisson-${name}-`);
  const owner = { uid: account.uid, gid: account.gid };
  const socket = join(dir, "engine.sock");
  for (const part of ["home", "run"]) spawnSync("mkdir", ["-m", "700", join(dir, part)], owner);
  // It forgets archives of images that it was sent.
  const own = { HOME: join(dir, "home"), XDG_RUNTIME_DIR: join(dir, "run"), TMPDIR: join(dir, "run") };
  const env = { PATH: process.env.PATH!, ...own };
  const [program, ...args] = command(dir, socket);
  const child = spawn(program, args, { ...owner, env, cwd: dir, stdio: "ignore" });
  const deadline = performance.now() + 60_000;
  // Its first answer may take long: without root it makes its namespaces then.
  while (!(await containersOf(socket).catch(() => undefined))) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
    if (performance.now() > deadline) throw new Error(`${name} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    socket,
    env: { DOCKER_HOST: `unix://${socket}` },
    async [Symbol.asyncDispose]() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await gone;
      // Without root, it may leave a process that holds its namespaces for the next one.
      killAllOf(dir);
      for (const mount of mountsBelow(dir)) spawnSync("umount", ["-l", mount]);
      removeTree(dir);
    },
  };
}
