import type { Keeper } from "../../keeper/index.ts";
import { Monitor } from "./monitor.ts";

/** The number of a set of descriptors that the monitor keeps. */
const set = 1;

/**
 * Saves the devices of a machine that is stopped and stays so into a new file, as those of one that runs: what goes on from
 * there does so by itself. Its memory is kept otherwise; QEMU would send it page by page.
 */
export async function saveDevices(keeper: Keeper, monitorPath: string, file: string): Promise<void> {
  // Node cannot pass descriptors; the monitor keeps what the keeper gave it.
  await keeper.giveToMonitor(monitorPath, set, file);
  using monitor = await Monitor.open(monitorPath);
  try {
    await monitor.execute("xen-save-devices-state", { filename: `/dev/fdset/${set}`, live: false });
  } finally {
    await monitor.execute("remove-fd", { "fdset-id": set }).catch(() => {});
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
