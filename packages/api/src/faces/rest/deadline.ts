import { CaissonError } from "@caisson/contract";
import { one } from "../http/call.ts";
import type { HttpCall, Request } from "../http/types.ts";

/** setTimeout's own bound; what is longer is no bound. */
const longestTimerMs = 2 ** 31 - 1;

/** A call that ends when its caller leaves or will not wait any longer. */
export interface LimitedCall {
  readonly call: HttpCall;
  /** Settles as the promise does, or with DEADLINE_EXCEEDED. */
  within<T>(promise: Promise<T>): Promise<T>;
  /** The same for each item. */
  each<T>(items: AsyncIterable<T>): AsyncIterable<T>;
  done(): void;
}

/** Reads `Request-Timeout-Ms`. */
export function limitCall(request: Request, call: HttpCall): LimitedCall {
  const header = one(request.headers["request-timeout-ms"]);
  if (header === undefined) return { call, within: (promise) => promise, each: (items) => items, done() {} };
  if (!/^[0-9]{1,10}$/.test(header))
    throw new CaissonError("INVALID_INPUT", "`Request-Timeout-Ms` must be 1 to 10 digits");
  const passed = new AbortController();
  const { promise: over, reject } = Promise.withResolvers<never>();
  over.catch(() => {});
  const expire = () => {
    const reason = new DOMException("the caller's time has passed", "TimeoutError");
    reject(reason);
    passed.abort(reason);
  };
  const ms = Number(header);
  const timer = ms > 0 && ms <= longestTimerMs ? setTimeout(expire, ms) : undefined;
  if (ms === 0) expire();
  const within = <T>(promise: Promise<T>): Promise<T> => Promise.race([promise, over]);
  return {
    call: { ...call, signal: AbortSignal.any([call.signal, passed.signal]) },
    within,
    async *each(items) {
      const iterator = items[Symbol.asyncIterator]();
      try {
        for (let next = await within(iterator.next()); !next.done; next = await within(iterator.next()))
          yield next.value;
      } finally {
        // Not waited for: it may be what took too long.
        void iterator.return?.().catch(() => {});
      }
    },
    done: () => clearTimeout(timer),
  };
}
