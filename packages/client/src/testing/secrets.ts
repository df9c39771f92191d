import { CaissonError, SecretService, type ServedService, serve } from "@caisson/contract";

export interface FakeSecret {
  name: string;
  hosts: string[];
  inject: string[];
  source: string;
  definedIn: string;
  /** What a test may look at, and no client ever sees. */
  value: unknown;
}

export function secretService(secrets: Map<string, FakeSecret>): ServedService {
  return serve(SecretService, {
    listSecrets: async () => ({ secrets: [...secrets.values()].map(({ value: _, ...secret }) => secret) }),
    setSecret: async ({ name, hosts, inject, source }) => {
      const kind = source.case === "value" ? "stored" : `${source.case}`;
      const secret = { name, hosts, inject, source: kind, definedIn: "set" };
      secrets.set(name, { ...secret, value: source.value });
      return { secret };
    },
    removeSecret: async ({ name }) => {
      if (!secrets.delete(name)) throw new CaissonError("SECRET_NOT_FOUND", `there is no secret ${name}`);
      return {};
    },
  });
}
