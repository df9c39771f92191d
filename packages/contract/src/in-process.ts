import { create, type DescMethod, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import type { CallContext, CallOptions, ServedService, Surroundings, Transport } from "./call.ts";
import { CaissonError } from "./errors.ts";

export interface InProcessOptions {
  /** Who calls. */
  actor: string;
  /** Makes the calls' ids. */
  nextRequestId: () => string;
  /** Where the caller is. */
  surroundings?: Surroundings;
}

type Handler = (input: unknown, call: CallContext) => unknown;

/** Calls the handlers themselves: the same services and the same errors without a socket in between. */
export function createInProcessTransport(
  services: readonly ServedService[],
  options: InProcessOptions,
): Transport {
  const handlers = new Map<DescMethod, Handler>();
  for (const { service, impl } of services) {
    for (const method of service.methods) {
      handlers.set(method, (impl[method.localName] as Handler).bind(impl));
    }
  }
  const handlerOf = (method: DescMethod): Handler => {
    const handler = handlers.get(method);
    if (handler === undefined) throw new CaissonError("METHOD_UNKNOWN", `there is no method ${method.name}`);
    return handler;
  };

  return {
    async unary(method, request, callOptions) {
      const call = beginCall(options, callOptions);
      try {
        const input = create(method.input, request);
        const output = await handlerOf(method)(
          method.methodKind === "client_streaming" ? once(input) : input,
          call,
        );
        return create(method.output, output as MessageInitShape<typeof method.output>) as never;
      } catch (thrown) {
        throw CaissonError.from(thrown);
      }
    },
    stream: (method, requests, callOptions) =>
      stream(method, handlerOf(method), requests, options, callOptions),
    close: async () => {},
  };
}

async function* stream<M extends DescMethod>(
  method: M,
  handler: Handler,
  requests: AsyncIterable<MessageInitShape<M["input"]>>,
  options: InProcessOptions,
  callOptions: CallOptions | undefined,
): AsyncGenerator<MessageShape<M["output"]>> {
  const call = beginCall(options, callOptions);
  let finished = false;
  const make = (message: unknown) => create(method.output, message as never) as MessageShape<M["output"]>;
  try {
    const inputs = messages(method, requests);
    const input = takesStream(method) ? inputs : await only(inputs);
    const output = handler(input, call);
    if (answersStream(method)) {
      for await (const message of output as AsyncIterable<unknown>) yield make(message);
    } else {
      yield make(await output);
    }
    finished = true;
  } catch (thrown) {
    throw CaissonError.from(thrown);
  } finally {
    // A reader that leaves early has gone away, as a closed socket would say.
    if (!finished) call.abandon();
  }
}

/** One for all calls: most of those who leave early have read all that they wanted. */
const hasLeft = new CaissonError("CANCELLED", "the caller has gone");

function beginCall(
  options: InProcessOptions,
  callOptions: CallOptions = {},
): CallContext & { abandon(): void } {
  const abandoned = new AbortController();
  const signals = [abandoned.signal];
  if (callOptions.signal !== undefined) signals.push(callOptions.signal);
  if (callOptions.timeoutMs !== undefined) signals.push(AbortSignal.timeout(callOptions.timeoutMs));
  const traceparent = callOptions.headers?.traceparent;
  return {
    actor: options.actor,
    requestId: options.nextRequestId(),
    signal: signals.length === 1 ? abandoned.signal : AbortSignal.any(signals),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(options.surroundings === undefined ? {} : { surroundings: options.surroundings }),
    abandon: () => abandoned.abort(hasLeft),
  };
}

const takesStream = (method: DescMethod) =>
  method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
const answersStream = (method: DescMethod) =>
  method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";

async function* messages<M extends DescMethod>(
  method: M,
  requests: AsyncIterable<MessageInitShape<M["input"]>>,
): AsyncGenerator<unknown> {
  for await (const request of requests) yield create(method.input, request);
}

async function* once(message: unknown): AsyncGenerator<unknown> {
  yield message;
}

async function only(inputs: AsyncIterable<unknown>): Promise<unknown> {
  for await (const input of inputs) return input;
  throw new CaissonError("INVALID_INPUT", "the call carries no message");
}
