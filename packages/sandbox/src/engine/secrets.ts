import { create } from "@bufbuild/protobuf";
import { CaissonError, type Secret, SecretSchema } from "@caisson/contract";
import type { Interceptor } from "../egress/seams.ts";
import type { DefinedSecret } from "../secrets/index.ts";
import type { SandboxSecrets } from "../secrets/sandbox-secrets.ts";
import type { EngineContext } from "./context.ts";
import type { EngineSecrets } from "./engine.ts";
import type { SandboxRecord } from "./records.ts";

/** What opens connections is loaded with the first sandbox that has secrets. */
const load = () => import("../secrets/sandbox-secrets.ts");

/** Secrets as callers see and change them. */
export function engineSecrets(context: EngineContext): EngineSecrets {
  return {
    list: async () => (await (await context.secrets()).list()).map(toSecret),
    async set({ name, hosts, inject, source, value }, call) {
      // A reference makes the daemon read files, variables and programs of its owner.
      if (source && !call.actor.startsWith("uid:"))
        throw new CaissonError("FORBIDDEN", "only the daemon's owner may set a secret by reference");
      const definition = { ...(source ?? { stored: true }), hosts, ...(inject.length > 0 ? { inject } : {}) };
      const set = await (await context.secrets()).set(name, definition, value);
      const data = { name, hosts, inject: set.definition.inject, source: sourceOf(set) };
      await context.commit([{ type: "secret.set", actor: call.actor, data }]);
      return toSecret(set);
    },
    async remove(name, call) {
      await (await context.secrets()).remove(name);
      await context.commit([{ type: "secret.removed", actor: call.actor, data: { name } }]);
    },
  };
}

export async function grantSecrets(
  context: EngineContext,
  names: readonly string[],
  allowWrite: readonly string[],
): Promise<SandboxSecrets | undefined> {
  if (names.length === 0) return undefined;
  const { SandboxSecrets } = await load();
  return SandboxSecrets.grant(names, await context.secrets(), {
    extraCa: context.settings.extraCa,
    allowWrite,
  });
}

/** Those of a sandbox that an earlier daemon made. Without them its connections stay closed to their hosts' secrets. */
export async function adoptSecrets(
  context: EngineContext,
  record: SandboxRecord,
): Promise<Interceptor | undefined> {
  const { secrets: names = [] } = record.spec as { secrets?: string[] };
  if (names.length === 0) return undefined;
  const { SandboxSecrets } = await load();
  const dir = context.dirOf(record.place);
  return (await SandboxSecrets.adopt(dir, await context.secrets(), context.settings.extraCa)).interceptor;
}

function toSecret(secret: DefinedSecret): Secret {
  const { name, hosts, inject } = secret.definition;
  return create(SecretSchema, { name, hosts, inject, source: sourceOf(secret), definedIn: secret.from });
}

/** Where a value comes from: the kind and the reference, as the owner wrote it. */
function sourceOf({ definition: { source } }: DefinedSecret): string {
  if ("env" in source) return `env ${source.env}`;
  if ("file" in source) return `file ${source.file}`;
  return "command" in source ? `command ${source.command[0]}` : "stored";
}
