import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { resuming } from "../call/resume.ts";
import { type AuditReport, auditReportFrom, type Event, eventFrom } from "../values/event.ts";

export interface SubscribeOptions extends CallOptions {
  /** Give what comes after this number. Default: 0, everything that is kept. */
  from?: number | undefined;
  /** False: stop at the end of what is there. Default: true. */
  follow?: boolean | undefined;
  sandboxId?: string | undefined;
  /** Only types that begin with one of these. */
  types?: string[] | undefined;
}

/** The numbered log of everything that happened. */
export class Events {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Events from a number on, without gap or duplicate; reattaches by itself after a cut. */
  async *subscribe({ from = 0, follow = true, ...options }: SubscribeOptions = {}): AsyncGenerator<Event> {
    let last = BigInt(from);
    const source = resuming({
      open: () =>
        this.#caller.stream(
          (c) => c.EventService.method.subscribeEvents,
          { from: last, noFollow: !follow, sandboxId: options.sandboxId ?? "", types: options.types ?? [] },
          options,
        ),
      took: () => true,
      endless: follow,
      signal: options.signal,
    });
    for await (const { event } of source) {
      if (!event || event.seq <= last) continue;
      last = event.seq;
      yield eventFrom(event);
    }
  }

  /** Checks the hash chain from a number on. */
  async verify({
    from = 0,
    ...options
  }: CallOptions & { from?: number | undefined } = {}): Promise<AuditReport> {
    const request = { from: BigInt(from) };
    const answer = await this.#caller.unary((c) => c.EventService.method.verifyAudit, request, options);
    return auditReportFrom(answer);
  }
}
