// What becomes an event of the log. A program that is refused again and again gets one event for each rule, target and
// second, with a count: the log stays readable, and a flood does not fill it.
import type { NewEvent } from "@caisson/store";
import type { Admitted, Flow, Via } from "./flow.ts";
import type { Refusal } from "./refusal.ts";

const togetherMs = 1000;
/** Different refusals that are waited with at once; beyond that they are counted under one. */
const maxWaiting = 256;

export type Keep = (events: NewEvent[]) => void;

interface Repeated {
  data: Record<string, unknown>;
  count: number;
}

export class Decisions {
  readonly #sandboxId: string;
  readonly #keep: Keep;
  readonly #waiting = new Map<string, Repeated>();
  #timer: NodeJS.Timeout | undefined;

  constructor(sandboxId: string, keep: Keep) {
    this.#sandboxId = sandboxId;
    this.#keep = keep;
  }

  allowed(flow: Flow): void {
    this.tell("network.allowed", {
      connection: flow.id,
      ...targetData(flow.target),
      address: flow.address.text,
    });
  }

  closed(flow: Flow): void {
    this.tell("network.closed", {
      connection: flow.id,
      ...targetData(flow.target),
      address: flow.address.text,
      sent: flow.sent,
      received: flow.received,
      ms: Math.round(performance.now() - flow.openedAt),
      ...(flow.cut ? { cut: flow.cut } : {}),
    });
  }

  /** It was allowed and did not come about. */
  failed(target: { name: string; port: number; via: Via; rule?: string }, message: string): void {
    this.#often("network.failed", { ...target, reason: message });
  }

  refused(target: { name: string; port: number; via: Via }, refusal: Refusal): void {
    const { rule, reason, add } = refusal.verdict;
    const address = refusal.address ? { address: refusal.address } : {};
    this.#often("network.refused", { ...target, ...address, rule, reason, ...(add ? { add } : {}) });
  }

  tell(type: string, data: Record<string, unknown>): void {
    this.#keep([{ type, actor: "daemon", sandboxId: this.#sandboxId, data }]);
  }

  /** Tells what is still being counted. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { data, count } of waiting) {
      const { type, ...rest } = data;
      if (count > 0) this.tell(type as string, { ...rest, count });
    }
  }

  /** The first is told at once, its repetitions with their count. */
  #often(type: string, data: Record<string, unknown>): void {
    const { name, port, rule } = data;
    let key = `${type} ${name} ${port} ${rule}`;
    let waiting = this.#waiting.get(key);
    if (!waiting && this.#waiting.size >= maxWaiting) {
      key = "further";
      waiting = this.#waiting.get(key);
    }
    if (waiting) {
      waiting.count++;
      return;
    }
    this.#waiting.set(key, { data: { type, ...data }, count: 0 });
    this.tell(type, data);
    this.#timer ??= setTimeout(() => this.flush(), togetherMs).unref();
  }
}

function targetData({ host, port, via, rule }: Admitted): Record<string, unknown> {
  return { name: host.name, port, via, rule };
}
