// The container engine that tests of the driver `docker` use: Docker's where root runs them, one's own Podman otherwise.
import { self } from "./daemon.ts";
import { canStartDockerd, startDockerd, type TestEngine } from "./dockerd.ts";
import { canStartPodman, startPodman } from "./podman.ts";

export type Engine = Pick<TestEngine, "socket" | "env"> & AsyncDisposable;

/** Whether this machine and user can have one. */
export function canStartEngine(): boolean {
  return process.getuid!() === 0 ? canStartDockerd() : canStartPodman(self());
}

/** Why not. */
export function whyNoEngine(): string | false {
  if (canStartEngine()) return false;
  return process.getuid!() === 0
    ? "Docker's engine is not installed"
    : "Podman is not installed, or /etc/subuid has no numbers for this user";
}

export function startEngine(): Promise<Engine> {
  return canStartDockerd() ? startDockerd() : startPodman(self());
}

/** The engine that all files of a run share; by itself, a test file has its own. It is not to be killed or stopped. */
export async function sharedEngine(): Promise<Engine> {
  const socket = process.env.CAISSON_TEST_ENGINE_SOCKET;
  if (socket === undefined) return startEngine();
  return { socket, env: { DOCKER_HOST: `unix://${socket}` }, async [Symbol.asyncDispose]() {} };
}
