import type { DescService } from "@bufbuild/protobuf";
import { CaissonError, type CallContext, rules, type ServedService } from "@caisson/contract";
import { ErrorInfoSchema, toErrorInfo } from "@caisson/contract/status";
import {
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { Log } from "../../deps.ts";
import type { HttpCall, Request, Response } from "../http/types.ts";
import type { Handler } from "../routes.ts";

const callKey = createContextKey<HttpCall | undefined>(undefined);

export type ConnectHandler = (request: Request, response: Response, call: HttpCall) => void;

/** gRPC, gRPC-Web and Connect, by connect-es. The call has passed the gate already. */
export function createConnectHandler(services: readonly ServedService[], log: Log): ConnectHandler {
  const calls = new WeakMap<Request, HttpCall>();
  const handle = connectNodeAdapter({
    routes: (router) => {
      for (const served of services) addService(router, served, log);
    },
    contextValues: (request) => createContextValues().set(callKey, calls.get(request as Request)),
    // No compression either way: nothing that unpacks to a thousand times its size is ever unpacked.
    acceptCompression: [],
    readMaxBytes: rules.sizes.message_bytes,
    writeMaxBytes: rules.sizes.message_bytes,
    jsonOptions: { ignoreUnknownFields: false },
  });
  return (request, response, call) => {
    calls.set(request, call);
    handle(request as never, response as never);
  };
}

function addService(router: ConnectRouter, { service, impl }: ServedService, log: Log): void {
  const methods: Record<string, unknown> = {};
  for (const method of service.methods) {
    const handler = (impl[method.localName] as unknown as Handler).bind(impl);
    const name = `${service.name}.${method.name}`;
    const streams = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
    methods[method.localName] = streams ? streaming(handler, name, log) : single(handler, name, log);
  }
  router.service(service as DescService, methods as never);
}

function single(handler: Handler, name: string, log: Log) {
  return async (input: unknown, context: HandlerContext) => {
    const call = callOf(context);
    try {
      return await orAborted(handler, input, call);
    } catch (thrown) {
      throw toConnectError(thrown, name, call, log);
    }
  };
}

function streaming(handler: Handler, name: string, log: Log) {
  return async function* (input: unknown, context: HandlerContext) {
    const call = callOf(context);
    try {
      call.signal.throwIfAborted();
      yield* handler(input, call) as AsyncIterable<unknown>;
    } catch (thrown) {
      throw toConnectError(thrown, name, call, log);
    }
  };
}

/** A caller whose time is up gets its answer, whatever the handler still does. */
async function orAborted(handler: Handler, input: unknown, call: CallContext): Promise<unknown> {
  call.signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(call.signal.reason);
  call.signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([handler(input, call), aborted]);
  } finally {
    call.signal.removeEventListener("abort", stop);
  }
}

/** The context's signal also knows of deadlines. */
function callOf(context: HandlerContext): CallContext {
  const call = context.values.get(callKey)!;
  return { ...call, signal: context.signal };
}

function toConnectError(thrown: unknown, method: string, call: CallContext, log: Log): ConnectError {
  // connect-es' own: a malformed message of a client's stream, or a deadline.
  if (thrown instanceof ConnectError) return thrown;
  const error = CaissonError.from(thrown);
  if (error.code === "INTERNAL") {
    log("error", "a call failed", { method, request_id: call.requestId, error: error.cause ?? error });
  }
  const detail = { desc: ErrorInfoSchema, value: toErrorInfo(error, call.requestId) };
  return new ConnectError(error.message, error.statusNumber, { "x-request-id": call.requestId }, [detail]);
}
