import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper } from "../../keeper/index.ts";
import { Monitor } from "./monitor.ts";

const descriptor = "state";

/**
 * Saves a machine that is stopped into a new file: its devices, and its memory unless that is a file of its own. The
 * machine stays stopped.
 */
export async function saveMachine(
  keeper: Keeper,
  monitorPath: string,
  file: string,
  withinMs: number,
): Promise<void> {
  // Node cannot pass descriptors; the monitor keeps what the keeper gave it.
  await keeper.giveToMonitor(monitorPath, descriptor, file);
  using monitor = await Monitor.open(monitorPath);
  await ignoreShared(monitor);
  // The default is meant for networks.
  await monitor.execute("migrate-set-parameters", { "max-bandwidth": 2 ** 40 });
  await monitor.execute("migrate", { uri: `fd:${descriptor}` });
  await finished(monitor, withinMs, "saved");
}

/** Lets a machine that waits for it begin with a saved state, from a descriptor that it has, and go on. */
export async function loadMachine(monitorPath: string, fd: number, withinMs: number): Promise<void> {
  using monitor = await Monitor.open(monitorPath);
  await ignoreShared(monitor);
  await monitor.execute("migrate-incoming", { uri: `fd:${fd}` });
  await finished(monitor, withinMs, "loaded");
  // It was stopped when it was saved, and has not forgotten.
  await monitor.execute("cont");
}

/** Memory that is a file of its own is not part of what is saved; both sides must know. */
async function ignoreShared(monitor: Monitor): Promise<void> {
  const capabilities = [{ capability: "x-ignore-shared", state: true }];
  await monitor.execute("migrate-set-capabilities", { capabilities });
}

async function finished(monitor: Monitor, withinMs: number, what: string): Promise<void> {
  const until = performance.now() + withinMs;
  for (let everyMs = 2; ; everyMs = Math.min(everyMs * 2, 20)) {
    const { status, "error-desc": words } = (await monitor.execute("query-migrate")) as Record<
      string,
      string
    >;
    if (status === "completed") return;
    if (status === "failed" || status === "cancelled") {
      throw new CaissonError("SANDBOX_FAILED", `the machine could not be ${what}: ${words ?? status}`);
    }
    if (performance.now() > until) {
      throw new CaissonError("DEADLINE_EXCEEDED", `the machine could not be ${what} in time`);
    }
    await sleep(everyMs);
  }
}

export async function stopMachine(monitorPath: string): Promise<void> {
  using monitor = await Monitor.open(monitorPath);
  await monitor.execute("stop");
}

export async function continueMachine(monitorPath: string): Promise<void> {
  using monitor = await Monitor.open(monitorPath);
  await monitor.execute("cont");
}
