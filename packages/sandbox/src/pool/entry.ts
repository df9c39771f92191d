import { CaissonError } from "@caisson/contract";
import type { Driver, Launched, LaunchRecord, LaunchSpec } from "../driver/driver.ts";
import type { Guest } from "../link/guest.ts";
import type { OpenOptions } from "../link/options.ts";
import { hostnameOf } from "./sandbox-id.ts";

/** Sandboxes that can stand for each other before they are sealed. */
export interface Kind {
  /** The driver's name. */
  readonly driver: string;
  /** As in a driver's launch. */
  readonly image: string;
  /** What of the host shows from the launch on; nothing where it is handed in later. */
  readonly shown?: readonly string[];
  /** The root of an image that shows from the launch on. */
  readonly root?: string;
  /** How much memory a machine leaves to it, where that is not the driver's usual. */
  readonly memoryBytes?: number;
  /** A saved machine to go on from. Never kept warm. */
  readonly machine?: string;
}

/** Do sandboxes of one kind do for the other? */
export function sameKind(one: Kind, other: Kind): boolean {
  return keyOf(one) === keyOf(other);
}

function keyOf({ driver, image, root = "", shown = [], memoryBytes = 0 }: Kind): string {
  return JSON.stringify([driver, image, root, shown, memoryBytes]);
}

/** A launched, unsealed sandbox whose link is open. */
export interface Entry {
  readonly sandboxId: string;
  /** Its directory on the host. */
  readonly dir: string;
  readonly launched: Launched;
  readonly guest: Guest;
  /** When it was launched, and what the host's mounts were. */
  readonly launchedAt: number;
  readonly mounts: string;
}

export interface LaunchHooks {
  drivers: readonly Driver[];
  /** Makes the sandbox's directory and says what its launch needs. */
  prepare(sandboxId: string, kind: Kind): Promise<Pick<LaunchSpec, "dir" | "cgroups" | "limits">>;
  /** A sandbox lives; kept so that a later daemon can end it. It waits for this. */
  onLaunched(sandboxId: string, record: LaunchRecord): Promise<void> | void;
  /** A sandbox that nobody took is gone; its directory can go too. */
  onGone(sandboxId: string): Promise<void> | void;
  openGuest(connect: Launched["connect"], options: OpenOptions): Promise<Guest>;
  /** The build that guests must be of. */
  build?: string;
}

/** Launches a sandbox that is not to be sealed any more; its link is left to the caller. */
export async function launchSealed(
  sandboxId: string,
  kind: Kind,
  hooks: LaunchHooks,
): Promise<{ id: string; dir: string; launched: Launched }> {
  const driver = hooks.drivers.find(({ name }) => name === kind.driver);
  if (!driver || !kind.machine)
    throw new CaissonError("NO_DRIVER", `there is no driver named ${kind.driver}`);
  try {
    const { dir, cgroups } = await hooks.prepare(sandboxId, kind);
    const { image, machine, memoryBytes } = kind;
    const spec = { sandboxId, image, dir, cgroups, machine, ...(memoryBytes ? { memoryBytes } : {}) };
    return { id: sandboxId, dir, launched: await driver.launch(spec) };
  } catch (error) {
    await tellGone(sandboxId, hooks);
    throw error;
  }
}

/** Launches a sandbox and opens its link; of a saved machine, one that was parked. Leaves nothing behind when it fails. */
export async function launchEntry(
  sandboxId: string,
  kind: Kind,
  hooks: LaunchHooks,
  at: { launchedAt: number; mounts: string },
): Promise<Entry> {
  const driver = hooks.drivers.find(({ name }) => name === kind.driver);
  if (!driver) throw new CaissonError("NO_DRIVER", `there is no driver named ${kind.driver}`);
  let launched: Launched | undefined;
  try {
    const prepared = await hooks.prepare(sandboxId, kind);
    const { dir } = prepared;
    launched = await driver.launch({
      sandboxId,
      image: kind.image,
      ...prepared,
      ...(kind.shown ? { shown: kind.shown } : {}),
      ...(kind.root ? { root: kind.root } : {}),
      ...(kind.memoryBytes ? { memoryBytes: kind.memoryBytes } : {}),
      ...(kind.machine ? { machine: kind.machine, wakeAs: hostnameOf(sandboxId) } : {}),
    });
    const { connect, ended, record } = launched;
    const options: OpenOptions = hooks.build === undefined ? { ended } : { ended, build: hooks.build };
    const opening = hooks.openGuest(() => connect.call(launched), options);
    // Both are awaited to the end, so that neither is left running when the other fails.
    const [guest, noted] = await Promise.allSettled([
      opening,
      (async () => hooks.onLaunched(sandboxId, record))(),
    ]);
    if (guest.status === "rejected") throw guest.reason;
    if (noted.status === "rejected") {
      guest.value.close();
      throw noted.reason;
    }
    return { sandboxId, dir, launched, guest: guest.value, ...at };
  } catch (error) {
    await launched?.kill().catch(() => {});
    await tellGone(sandboxId, hooks);
    throw error instanceof CaissonError
      ? error
      : new CaissonError("SANDBOX_FAILED", "a sandbox could not be launched", { cause: error });
  }
}

/** Ends a sandbox that nobody took. */
export async function discardEntry(
  entry: Pick<Entry, "sandboxId" | "launched" | "guest">,
  hooks: LaunchHooks,
): Promise<void> {
  entry.guest.close();
  await entry.launched.kill().catch(() => {});
  await tellGone(entry.sandboxId, hooks);
}

async function tellGone(sandboxId: string, hooks: LaunchHooks): Promise<void> {
  try {
    await hooks.onGone(sandboxId);
  } catch {
    // What is left is found by the janitor when the daemon starts next.
  }
}
