import { WorkspaceMode } from "@caisson/contract";
import { Surroundings } from "@caisson/contract/link";
import { readMountinfo } from "../pool/host-mounts.ts";
import { closeWall } from "./close-wall.ts";
import type { EngineContext } from "./context.ts";
import { kindOf } from "./kind.ts";
import { rehearse } from "./rehearse.ts";
import type { SandboxPlan } from "./spec.ts";
import type { Chosen } from "./start-box.ts";

/** So long a closed sandbox waits for somebody who asks for the same. */
const keptMs = 30_000;

interface Waiting extends Required<Chosen> {
  readonly plan: SandboxPlan;
  readonly likeness: string;
  readonly expiry: NodeJS.Timeout;
}

/**
 * Who asks for a sandbox often asks for the same again: while nobody waits, the wall of one is closed for the plan
 * that came last. It is used once, by the first plan that is like it in everything that the wall was made from.
 */
export class ClosedAhead {
  readonly #context: EngineContext;
  #waiting: Waiting | undefined;
  #making: Promise<void> | undefined;
  /** What the last plan of a driver was like whose sandboxes take long to launch. */
  #last: string | undefined;
  #ended = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  take(plan: SandboxPlan): Chosen | undefined {
    const waiting = this.#waiting;
    if (!waiting || waiting.plan.toolchains !== plan.toolchains) return undefined;
    if (waiting.likeness !== likenessOf(plan)) return undefined;
    this.#forget();
    return waiting;
  }

  /** Makes one for the next who asks for this; in the background, and only if it can be known to be the same. */
  expect(plan: SandboxPlan): void {
    if (this.#ended || !canWait(plan) || !this.#isWorthIt(plan) || this.#making) return;
    this.#making = this.#make(plan)
      .catch((error) =>
        this.#context.log("debug", "no wall was closed ahead of time", { error: String(error) }),
      )
      .finally(() => {
        this.#making = undefined;
      });
  }

  /** One that nobody asks for has to be launched again: where that takes long, only for what was asked for twice. */
  #isWorthIt(plan: SandboxPlan): boolean {
    if (plan.driver.capabilities.includes("mounts")) return true;
    const before = this.#last;
    this.#last = likenessOf(plan);
    return before === this.#last;
  }

  async close(): Promise<void> {
    this.#ended = true;
    this.#discardWaiting();
    await this.#making;
  }

  async #make(plan: SandboxPlan): Promise<void> {
    const { pool } = this.#context.parts;
    const taken = await pool.spare(kindOf(plan));
    if (!taken) return;
    this.#discardWaiting();
    // Read before anything is handed in: what changes meanwhile makes it unlike.
    const likeness = likenessOf(plan);
    try {
      const closed = await closeWall(this.#context, plan, taken);
      await closed.enforced;
      if (plan.driver.surroundings === Surroundings.GVISOR) await rehearse(taken.guest);
      if (this.#ended) pool.discard(taken);
      else this.#keep({ plan, likeness, taken, closed });
    } catch (error) {
      pool.discard(taken);
      throw error;
    }
  }

  #keep(made: Omit<Waiting, "expiry">): void {
    const discard = () => {
      if (this.#waiting === waiting) this.#discardWaiting();
    };
    const waiting: Waiting = { ...made, expiry: setTimeout(discard, keptMs).unref() };
    this.#waiting = waiting;
    void made.taken.guest.lost.then(discard);
    void made.taken.launched.ended.then(discard);
  }

  #discardWaiting(): void {
    const taken = this.#waiting?.taken;
    if (!taken) return;
    this.#forget();
    this.#context.parts.pool.discard(taken);
  }

  #forget(): void {
    clearTimeout(this.#waiting?.expiry);
    this.#waiting = undefined;
  }
}

/** Only what is mounted as it is, and made from nothing that the likeness does not tell. */
export function canWait({
  workspace,
  driver,
  secrets,
  snapshot,
  caches,
  image,
  profile,
}: SandboxPlan): boolean {
  const { mode, dir } = workspace;
  if (secrets || snapshot || image || caches.length > 0) return false;
  const isMounted = mode === WorkspaceMode.OVERLAY && driver.capabilities.includes("mounts");
  if (mode !== WorkspaceMode.NONE && !isMounted) return false;
  // Closing the wall looks these up; the overlay would remember what it found there.
  return ![...profile.denyRead, ...profile.allowWrite].some(
    (path) => dir !== "" && path.startsWith(`${dir}/`),
  );
}

/** What a wall is made from, as a text to compare. Toolchains are compared by what they were found to be. */
export function likenessOf(plan: SandboxPlan, mounts = readMountinfo()): string {
  const { asked, driver, profile, limits, network, syscalls, workspace } = plan;
  const { dev, ino, mode, uid, gid } = workspace.stats ?? {};
  const project = [workspace.mode, workspace.dir, dev, ino, mode, uid, gid].map(String);
  const parts = [asked, driver.name, profile.name, limits, network, syscalls, project, mounts];
  return JSON.stringify(parts);
}
