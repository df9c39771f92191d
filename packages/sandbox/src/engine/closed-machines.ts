import { mkdir, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { WorkspaceMode } from "@caisson/contract";
import { bound, groupOf } from "./bounds.ts";
import { closeWall } from "./close-wall.ts";
import { canWait, likenessOf } from "./closed-ahead.ts";
import type { EngineContext } from "./context.ts";
import type { HashedReport } from "./enforcement.ts";
import { kindOf } from "./kind.ts";
import type { Taken } from "./parts.ts";
import type { SandboxPlan } from "./spec.ts";
import type { Chosen } from "./start-box.ts";

/** So long a machine is kept that nobody asks for: it takes as much memory as the machine has used. */
const keptMs = 600_000;
/** What a closed sandbox still does by itself is done after this; nothing depends on it but the time of a first command. */
const settledMs = 300;

interface KeptMachine {
  readonly file: string;
  readonly plan: SandboxPlan;
  readonly likeness: string;
  readonly report: HashedReport;
  expiry: NodeJS.Timeout;
}

/**
 * A machine whose wall was closed for the plan that came last, saved before anything ran in it: who asks for the same gets a
 * copy, which only has to become one of its own. Made where somebody had to wait for a machine twice in a row; for those
 * without a project, since a machine shows nothing else of the host.
 */
export class ClosedMachines {
  readonly #context: EngineContext;
  #kept: KeptMachine | undefined;
  #making: Promise<void> | undefined;
  #last: string | undefined;
  #count = 0;
  #ended = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** A copy for this plan; nothing where there is none, or where taking one that waits is quicker. */
  async take(plan: SandboxPlan): Promise<Chosen | undefined> {
    const kept = this.#kept;
    if (!kept || kept.plan.toolchains !== plan.toolchains || kept.likeness !== likenessOf(plan, ""))
      return undefined;
    const { pool } = this.#context.parts;
    const kind = kindOf(plan);
    if (pool.hasWaiting(kind)) return undefined;
    kept.expiry.refresh();
    try {
      const taken = await pool.fresh({ ...kind, machine: kept.file });
      const renewed = taken.guest.renew(taken.id);
      renewed.catch(() => {});
      try {
        await bound(groupOf(this.#context, taken), plan, taken.launched);
      } catch (error) {
        pool.discard(taken);
        throw error;
      }
      return { taken, closed: { enforced: renewed.then(() => kept.report) } };
    } catch (error) {
      // The host was upgraded, or the keeper that held its memory is gone: the usual way mends both.
      this.#context.log("debug", "a machine that was closed ahead is of no use", { error: String(error) });
      if (this.#kept === kept) await this.forget();
      return undefined;
    }
  }

  /** Somebody had to wait for this machine with this plan: makes one for the next, in the background. */
  expect(plan: SandboxPlan, { launched }: Taken): void {
    if (!launched.park || plan.workspace.mode !== WorkspaceMode.NONE) return;
    if (this.#ended || this.#making || !canWait(plan)) return;
    const before = this.#last;
    this.#last = likenessOf(plan, "");
    if (before !== this.#last || this.#kept?.likeness === this.#last) return;
    this.#making = this.#make(plan)
      .catch((error) => this.#context.log("debug", "no machine was closed ahead", { error: String(error) }))
      .finally(() => {
        this.#making = undefined;
      });
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#making;
    await this.forget();
  }

  /** Its memory goes with its file; copies that live keep theirs. Also removes what an earlier daemon left. */
  async forget(): Promise<void> {
    clearTimeout(this.#kept?.expiry);
    this.#kept = undefined;
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #make(plan: SandboxPlan): Promise<void> {
    const { pool } = this.#context.parts;
    await pool.quiet();
    await this.forget();
    const likeness = likenessOf(plan, "");
    const taken = await pool.fresh(kindOf(plan));
    const { launched, guest } = taken;
    try {
      const { park, pause, saveMachine } = launched;
      if (!park || !pause || !saveMachine || this.#ended) return;
      const report = await (await closeWall(this.#context, plan, taken)).enforced;
      await sleep(settledMs);
      guest.close();
      if (this.#ended) return;
      await park.call(launched);
      await pause.call(launched);
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      const file = `${this.#directory}/${this.#count++}`;
      await saveMachine.call(launched, file, true);
      const expiry = setTimeout(() => this.forget(), keptMs).unref();
      this.#kept = { file, plan, likeness, report, expiry };
    } finally {
      pool.discard(taken);
    }
  }

  get #directory(): string {
    return `${this.#context.home}/closed-machines`;
  }
}
