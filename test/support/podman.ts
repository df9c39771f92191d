// Podman's service of the tests' own, as any account: it needs no root, and nothing of it is the machine's.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Account, temporaryDirectory } from "./daemon.ts";
import { containersOf, mountsBelow, type TestEngine } from "./dockerd.ts";
import { killAllOf } from "./kill.ts";
import { removeTree } from "./remove-tree.ts";

/** Whether this machine has it, with what an ordinary user needs: numbers for the users of his containers. */
export function canStartPodman(account: Account): boolean {
  if (spawnSync("which", ["podman", "newuidmap"]).status !== 0) return false;
  const numbers = existsSync("/etc/subuid") ? readFileSync("/etc/subuid", "utf8") : "";
  const owners = numbers.split("\n").map((line) => line.split(":")[0]);
  return account.uid === 0 || owners.some((owner) => owner === account.name || owner === String(account.uid));
}

export async function startPodman(
  account: Account,
): Promise<Pick<TestEngine, "socket" | "env"> & AsyncDisposable> {
  const dir = temporaryDirectory(account, "caisson-podman-");
  const owner = { uid: account.uid, gid: account.gid };
  const socket = join(dir, "podman.sock");
  for (const name of ["home", "run"]) spawnSync("mkdir", ["-m", "700", join(dir, name)], owner);
  // It forgets archives of images that it was sent.
  const own = { HOME: join(dir, "home"), XDG_RUNTIME_DIR: join(dir, "run"), TMPDIR: join(dir, "run") };
  const env = { PATH: process.env.PATH!, ...own };
  const base = [
    "--root",
    join(dir, "data"),
    // Its path may have fifty characters.
    "--runroot",
    join(dir, "run"),
    "--tmpdir",
    join(dir, "run/libpod"),
  ];
  const child = spawn("podman", [...base, "system", "service", "--time=0", `unix://${socket}`], {
    ...owner,
    env,
    cwd: dir,
    stdio: "ignore",
  });
  const deadline = performance.now() + 60_000;
  // Its first answer may take long: without root it makes its namespaces then.
  while (!(await containersOf(socket).catch(() => undefined))) {
    if (child.exitCode !== null) throw new Error(`podman ended with ${child.exitCode}`);
    if (performance.now() > deadline) throw new Error("podman does not answer");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    socket,
    env: { DOCKER_HOST: `unix://${socket}` },
    async [Symbol.asyncDispose]() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await gone;
      // Without root, it leaves a process that holds its namespaces for the next one.
      killAllOf(dir);
      for (const mount of mountsBelow(dir)) spawnSync("umount", ["-l", mount]);
      removeTree(dir);
    },
  };
}
