import { rules } from "@caisson/contract";
import type { EngineContext } from "./context.ts";
import { forgetSandbox } from "./forget.ts";
import { endBox } from "./lifecycle.ts";
import { kinds, type SandboxRecord } from "./records.ts";
import { allSnapshots } from "./snapshots/record.ts";

const lookMs = 1000;
const sweepMs = 10 * 60_000;
const firstSweepMs = 30_000;
/** Ended sandboxes that are kept at most; the oldest go first. */
const keptEnded = 1000;

/** Ends sandboxes whose time is over, and forgets ended ones after a day. */
export class Upkeep {
  readonly #context: EngineContext;
  readonly #timers: NodeJS.Timeout[];

  constructor(context: EngineContext) {
    this.#context = context;
    this.#timers = [
      setInterval(() => this.#look(), lookMs).unref(),
      setTimeout(() => void this.sweep(), firstSweepMs).unref(),
      setInterval(() => void this.sweep(), sweepMs).unref(),
    ];
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #look(): void {
    for (const box of this.#context.boxes.values()) {
      const reason = box.ending ? undefined : box.expired();
      if (reason) void endBox(this.#context, box, reason, "", "daemon");
    }
  }

  /** Forgets what was kept for long enough. */
  async sweep(): Promise<void> {
    const context = this.#context;
    try {
      const ended = [...context.store.scan<SandboxRecord>(kinds.ended)].map(([, record]) => record);
      ended.sort((a, b) => b.endedAt - a.endedAt);
      const oldest = Date.now() - rules.times.kept_after_end_s * 1000;
      for (const [index, record] of ended.entries()) {
        if (index >= keptEnded || record.endedAt < oldest) await forgetSandbox(context, record, "daemon");
      }
      const used = new Set([...context.boxes.values()].map((box) => box.record.enforcement));
      for (const [, record] of context.store.scan<SandboxRecord>(kinds.ended)) used.add(record.enforcement);
      // A machine goes on behind the wall that it was kept with.
      for (const { sandbox } of allSnapshots(context)) used.add(sandbox.enforcement);
      await context.commit([], [...context.idempotency.expired(), ...context.reports.unused(used)]);
    } catch (error) {
      context.log("warn", "old sandboxes could not be forgotten", { error: String(error) });
    }
  }
}
