import { NetworkService, type ServedService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkPageSize, checkSandboxId } from "./check.ts";
import type { Repeats } from "./repeats.ts";

export function networkService({ network }: Engine, repeats: Repeats): ServedService {
  return serve(NetworkService, {
    async getNetwork(request) {
      return network.get(checkSandboxId(request.sandboxId));
    },
    async updateNetwork(request, call) {
      checkSandboxId(request.sandboxId);
      return await repeats.once(NetworkService.method.updateNetwork, request, call, () =>
        network.update(request, call),
      );
    },
    async listDecisions({ sandboxId, refusedOnly, pageSize, pageToken }) {
      return await network.decisions({
        sandboxId: sandboxId === "" ? "" : checkSandboxId(sandboxId),
        refusedOnly,
        pageSize: checkPageSize(pageSize),
        pageToken,
      });
    },
  });
}
