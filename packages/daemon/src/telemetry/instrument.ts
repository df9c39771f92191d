// Measures and traces every call, whatever face it came through.
import type { DescMethod } from "@bufbuild/protobuf";
import { CaissonError, type CallContext, rules, type ServedService } from "@caisson/contract";
import { log } from "../log.ts";
import type { Metrics } from "./metrics.ts";

/** A span that has begun. */
export interface OpenSpan {
  /** Itself as the parent of what the call brings about. */
  traceparent: string;
  end(outcome: { error?: CaissonError; attributes: Record<string, string | number | boolean> }): void;
}

/** Begins a span; undefined where nobody collects them. */
export type BeginSpan = (name: string, traceparent: string | undefined) => OpenSpan;

/** Counts a call for as long as it lasts; the result is called at its end. */
export type BeginWork = (method: DescMethod) => () => void;

interface Means {
  metrics: Metrics;
  beginSpan: BeginSpan | undefined;
  beginWork: BeginWork;
}

type Impl = (request: unknown, call: CallContext) => Promise<unknown> | AsyncIterable<unknown>;

export function instrument(
  services: ServedService[],
  metrics: Metrics,
  beginSpan?: BeginSpan,
  beginWork: BeginWork = () => () => {},
): ServedService[] {
  return services.map(({ service, impl }) => ({
    service,
    impl: Object.fromEntries(
      service.methods.map((method) => {
        const inner = (impl as unknown as Record<string, Impl>)[method.localName]!.bind(impl);
        return [method.localName, measured(method, inner, { metrics, beginSpan, beginWork })];
      }),
    ) as ServedService["impl"],
  }));
}

function measured(method: DescMethod, inner: Impl, { metrics, beginSpan, beginWork }: Means): Impl {
  const name = spanName(method);
  const begin = (request: unknown, call: CallContext) => {
    const began = performance.now();
    const endWork = beginWork(method);
    const span = beginSpan?.(name, call.traceparent);
    const seen = noting(method, request, span !== undefined);
    const end = (error?: unknown, ...responses: unknown[]) => {
      endWork();
      const failure = error === undefined ? undefined : CaissonError.from(error);
      if (failure?.code === "INTERNAL") {
        log("error", failure.message, {
          method: method.name,
          request: call.requestId,
          error: failure.cause ?? error,
        });
      }
      metrics.add("caisson_calls_total", { method: method.name, code: failure?.code ?? "OK" });
      metrics.observe("caisson_call_seconds", { method: method.name }, (performance.now() - began) / 1000);
      span?.end({
        ...(failure && { error: failure }),
        attributes: {
          "sandbox.request_id": call.requestId,
          ...(call.attempt === undefined ? {} : { "sandbox.retry.attempt": call.attempt }),
          ...attributesOf(seen.first()),
          ...Object.assign({}, ...responses.map(attributesOf)),
        },
      });
    };
    return {
      end,
      request: seen.request,
      call: span === undefined ? call : new TracedCall(call, span.traceparent),
    };
  };
  if (method.methodKind === "unary" || method.methodKind === "client_streaming") {
    return async (given, outer) => {
      const { end, call, request } = begin(given, outer);
      try {
        const response = await (inner(request, call) as Promise<unknown>);
        end(undefined, response);
        return response;
      } catch (error) {
        end(error);
        throw error;
      }
    };
  }
  return async function* (given, outer) {
    const { end, call, request } = begin(given, outer);
    let first: unknown;
    let last: unknown;
    let failure: unknown;
    try {
      for await (last of inner(request, call) as AsyncIterable<unknown>) {
        first ??= last;
        yield last;
      }
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      // Also when the reader leaves early.
      end(failure, first, last);
    }
  };
}

/** The message that describes a call: the request, or the first of a stream, which is noted in passing. */
function noting(
  method: DescMethod,
  request: unknown,
  wanted: boolean,
): { request: unknown; first: () => unknown } {
  if (method.methodKind === "unary" || method.methodKind === "server_streaming" || !wanted)
    return { request, first: () => request };
  let first: unknown;
  const noted = async function* () {
    for await (const message of request as AsyncIterable<unknown>) {
      first ??= message;
      yield message;
    }
  };
  return { request: noted(), first: () => first };
}

/** The same call, whose own span is the parent of what follows. */
class TracedCall implements CallContext {
  readonly #outer: CallContext;
  readonly traceparent: string;

  constructor(outer: CallContext, traceparent: string) {
    this.#outer = outer;
    this.traceparent = traceparent;
  }

  get actor() {
    return this.#outer.actor;
  }

  get signal() {
    return this.#outer.signal;
  }

  get requestId() {
    return this.#outer.requestId;
  }

  get mayApprove() {
    return this.#outer.mayApprove as NonNullable<CallContext["mayApprove"]>;
  }

  get seesAll() {
    return this.#outer.seesAll as NonNullable<CallContext["seesAll"]>;
  }

  get attempt() {
    return this.#outer.attempt as NonNullable<CallContext["attempt"]>;
  }

  get surroundings() {
    return this.#outer.surroundings as NonNullable<CallContext["surroundings"]>;
  }
}

function spanName(method: DescMethod): string {
  const { spans } = rules.telemetry;
  if (method.name === "CreateSandbox") return spans.create;
  if (["Exec", "StartProcess", "Run", "RunStream"].includes(method.name)) return spans.exec;
  return method.parent.name === "FileService" ? spans.file : spans.rpc;
}

interface Described {
  sandboxId?: string;
  processId?: string;
  path?: string;
  sandbox?: { id?: string; driver?: string; enforced?: { tier?: string } };
  command?: { argv?: string[] };
  exit?: { code: number; truncated?: boolean };
  event?: { event?: { case?: string; value?: unknown } };
  info?: { size?: bigint };
}

/** The attributes of the telemetry rules that a message answers; a command's arguments are never among them. */
function attributesOf(message: unknown): Record<string, string | number | boolean> {
  if (typeof message !== "object" || message === null) return {};
  const { sandboxId, processId, path, sandbox, command, exit, event, info } = message as Described;
  const found: Record<string, string | number | boolean> = {};
  const set = (key: string, value: string | number | boolean | undefined) => {
    if (value !== undefined && value !== "") found[key] = value;
  };
  set("sandbox.id", sandboxId ?? sandbox?.id);
  set("sandbox.driver", sandbox?.driver);
  set("sandbox.tier", sandbox?.enforced?.tier);
  set("sandbox.process.id", processId);
  set("sandbox.command.executable", command?.argv?.[0]);
  set("sandbox.file.path", path);
  set("sandbox.file.size", info?.size === undefined ? undefined : Number(info.size));
  const ended =
    exit ?? (event?.event?.case === "exit" ? (event.event.value as Described["exit"]) : undefined);
  set("sandbox.exit_code", ended?.code);
  set("sandbox.truncated", ended?.truncated);
  return found;
}
