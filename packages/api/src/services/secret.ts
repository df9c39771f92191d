import { SecretService, type ServedService, type SetSecretRequest, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { invalid } from "./check.ts";

export function secretService({ secrets }: Engine): ServedService {
  return serve(SecretService, {
    async listSecrets() {
      return { secrets: await secrets.list() };
    },
    async setSecret({ name, hosts, inject, source }, call) {
      const value = source.case === "value" ? source.value : undefined;
      return {
        secret: await secrets.set({ name, hosts, inject, value, source: referenceOf(source) }, call),
      };
    },
    async removeSecret({ name }, call) {
      await secrets.remove(name, call);
      return {};
    },
  });
}

function referenceOf({ case: kind, value }: SetSecretRequest["source"]) {
  switch (kind) {
    case "value":
      return undefined;
    case "env":
      return { env: value };
    case "file":
      return { file: value };
    case "command":
      return { command: value.argv };
    default:
      throw invalid("a secret needs one of `value`, `env`, `file` and `command`");
  }
}
