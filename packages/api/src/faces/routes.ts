import type { DescMethod } from "@bufbuild/protobuf";
import type { CallContext, ServedService } from "@caisson/contract";

/** A handler, whatever its kind: messages or iterables of them, in and out. */
export type Handler = (input: unknown, call: CallContext) => unknown;

/** A method and its handler. */
export interface Route {
  method: DescMethod;
  handler: Handler;
  takesStream: boolean;
  answersStream: boolean;
}

/** Every route by `service/method`. */
export function createRoutes(services: readonly ServedService[]): ReadonlyMap<string, Route> {
  const routes = new Map<string, Route>();
  for (const { service, impl } of services) {
    for (const method of service.methods) {
      const kind = method.methodKind;
      routes.set(`${service.typeName}/${method.name}`, {
        method,
        handler: (impl[method.localName] as unknown as Handler).bind(impl),
        takesStream: kind === "client_streaming" || kind === "bidi_streaming",
        answersStream: kind === "server_streaming" || kind === "bidi_streaming",
      });
    }
  }
  return routes;
}
