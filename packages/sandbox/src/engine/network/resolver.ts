import type { NameResolver } from "../../egress/resolver.ts";
import type { EngineContext } from "../context.ts";

/** The one that all doors share, with what it remembers. */
export async function resolverOf(context: EngineContext): Promise<NameResolver> {
  const { NameResolver } = await import("../../egress/resolver.ts");
  context.names ??= new NameResolver({ servers: context.settings.network.dnsServers });
  return context.names;
}
