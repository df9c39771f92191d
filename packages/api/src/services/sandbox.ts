import { SandboxService, type ServedService, seesAll, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkKey, checkLabels, checkPageSize, checkSandboxId, checkSpec } from "./check.ts";
import type { Repeats } from "./repeats.ts";

export function sandboxService(engine: Engine, repeats: Repeats): ServedService {
  return serve(SandboxService, {
    async createSandbox(request, call) {
      const options = { key: checkKey(request.idempotencyKey), wait: !request.noWait };
      return { sandbox: await engine.create(checkSpec(request.spec), options, call) };
    },
    async getSandbox(request) {
      return { sandbox: await engine.get(checkSandboxId(request.sandboxId)) };
    },
    async listSandboxes(request, call) {
      return await engine.list({
        ...(seesAll(call) ? {} : { owner: call.actor }),
        labels: checkLabels(request.labels),
        all: request.all,
        pageSize: checkPageSize(request.pageSize),
        pageToken: request.pageToken,
      });
    },
    async deleteSandbox(request, call) {
      const options = { reason: "deleted", forget: request.forget, key: checkKey(request.idempotencyKey) };
      return { sandbox: await engine.end(checkSandboxId(request.sandboxId), options, call) };
    },
    async extendSandbox(request, call) {
      const change = { idleTtlS: request.idleTtlS, maxAgeS: request.maxAgeS };
      return await repeats.once(SandboxService.method.extendSandbox, request, call, async () => ({
        sandbox: await engine.extend(checkSandboxId(request.sandboxId), change, call),
      }));
    },
    async getSandboxStats(request) {
      return { stats: await engine.stats(checkSandboxId(request.sandboxId)) };
    },
  });
}
