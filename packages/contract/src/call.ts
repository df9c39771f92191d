import type { DescMethod, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { CaissonError } from "./errors.ts";

/** Who calls, and under which conditions. Made by the face that took the call. */
export interface CallContext {
  /** `uid:1000`, `key:NAME`, `jwt:SUBJECT`, `daemon`. */
  readonly actor: string;
  /** Aborted when the caller goes away or its deadline passes. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** W3C trace context of the caller, if any. */
  readonly traceparent?: string;
  /** Which attempt of the caller's this is, where it is not the first. */
  readonly attempt?: number;
  /** The caller's own PATH and home directory; only where the caller is the daemon's owner, on its machine. */
  readonly surroundings?: Surroundings;
  /** The caller may answer requests for approval; where it is not said, only the daemon's owner may. */
  readonly mayApprove?: boolean;
  /** The caller sees what others have made; where it is not said, only the daemon's owner does. */
  readonly seesAll?: boolean;
}

/** Whose wish something is. */
export type Caller = Pick<CallContext, "actor" | "seesAll">;

/** Does a caller see what others have made? */
export function seesAll(call: Caller): boolean {
  return call.seesAll ?? call.actor.startsWith("uid:");
}

/** Throws where `what` would be changed by somebody who neither made it nor sees everything. */
export function mustOwn(call: Caller, owner: string | undefined, what: string): void {
  if (seesAll(call) || owner === call.actor) return;
  throw new CaissonError("FORBIDDEN", `${what} is another's: to change it takes the scope all`);
}

/** By which programs are found on somebody's machine. */
export interface Surroundings {
  readonly path: string;
  readonly home: string;
}

type Stream<T> = AsyncIterable<T>;

/** A method's implementation, whatever the transport. */
export type MethodImpl<M extends DescMethod> = M["methodKind"] extends "unary"
  ? (request: MessageShape<M["input"]>, call: CallContext) => Promise<MessageInitShape<M["output"]>>
  : M["methodKind"] extends "server_streaming"
    ? (request: MessageShape<M["input"]>, call: CallContext) => Stream<MessageInitShape<M["output"]>>
    : M["methodKind"] extends "client_streaming"
      ? (
          requests: Stream<MessageShape<M["input"]>>,
          call: CallContext,
        ) => Promise<MessageInitShape<M["output"]>>
      : (
          requests: Stream<MessageShape<M["input"]>>,
          call: CallContext,
        ) => Stream<MessageInitShape<M["output"]>>;

/** A service's implementation: one function per method, under its local name. */
export type ServiceImpl<S extends DescService> = {
  [name in keyof S["method"]]: S["method"][name] extends DescMethod ? MethodImpl<S["method"][name]> : never;
};

/** A service with its implementation, as the faces serve it. */
export interface ServedService {
  readonly service: DescService;
  readonly impl: Record<string, (...args: never[]) => unknown>;
}

/** Pairs a service with its implementation; checks the types. */
export function serve<S extends DescService>(service: S, impl: ServiceImpl<S>): ServedService {
  return { service, impl: impl as unknown as ServedService["impl"] };
}

export interface CallOptions {
  signal?: AbortSignal;
  /** For the whole call, in milliseconds. */
  timeoutMs?: number;
  headers?: Record<string, string>;
}

/** What the SDK calls through: a ttRPC socket, Connect over HTTP, or the services themselves in-process. */
export interface Transport {
  unary<M extends DescMethod>(
    method: M,
    request: MessageInitShape<M["input"]>,
    options?: CallOptions,
  ): Promise<MessageShape<M["output"]>>;
  /** Every kind of stream; a single request is an iterable of one. */
  stream<M extends DescMethod>(
    method: M,
    requests: AsyncIterable<MessageInitShape<M["input"]>>,
    options?: CallOptions,
  ): AsyncIterable<MessageShape<M["output"]>>;
  close(): Promise<void>;
}
