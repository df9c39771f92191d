import type { ProcessEvent } from "@caisson/contract";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { resuming } from "../call/resume.ts";

/** One event of a process, as the calls that stream them carry it. */
export type EventStream = AsyncIterable<{ event?: ProcessEvent | undefined }>;

export interface Following {
  /** The call that starts the command and streams its events; otherwise `target` is attached to. */
  open?: () => EventStream;
  target?: { sandboxId: string; id: string };
  /** Give what comes after this number. */
  from: number;
  /** Stay until the command has ended. */
  following: boolean;
  options: CallOptions;
}

/** A process's events, reattaching after a cut from the last number that arrived. */
export async function* follow(
  caller: Caller,
  { open, target, ...rest }: Following,
): AsyncGenerator<ProcessEvent> {
  const { following, options } = rest;
  let from = BigInt(rest.from);
  const attach = (process: { sandboxId: string; id: string }) =>
    caller.stream(
      (c) => c.ProcessService.method.attachProcess,
      { sandboxId: process.sandboxId, processId: process.id, from, noFollow: !following },
      options,
    );
  const source = resuming<{ event?: ProcessEvent | undefined }>({
    // Without a target the command may not have started: the same call with the same key starts it once.
    open: () => (target ? attach(target) : open!()),
    took: ({ event }) => {
      if (event?.event.case === "started") target ??= event.event.value;
      return event?.event.case !== "exit";
    },
    endless: following,
    signal: options.signal,
  });
  for await (const { event } of source) {
    const fresh = event && after(event, from);
    if (!fresh) continue;
    if (fresh.seq > from) from = fresh.seq;
    yield fresh;
  }
}

/** What of an event lies after a number: a repeated piece is dropped, an overlapping one is cut. */
function after(message: ProcessEvent, from: bigint): ProcessEvent | undefined {
  const { seq, event } = message;
  if (event.case !== "stdout" && event.case !== "stderr") return message;
  if (seq <= from) return undefined;
  const fresh = Number(seq - from);
  const { data } = event.value;
  if (fresh >= data.length) return message;
  return {
    ...message,
    event: { ...event, value: { ...event.value, data: data.subarray(data.length - fresh) } },
  };
}
