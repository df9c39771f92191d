import { type ImportSnapshotRequest, type ServedService, SnapshotService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkLabels, checkSandboxId, invalid } from "./check.ts";

const mostForks = 16;

export function snapshotService({ snapshots }: Engine): ServedService {
  return serve(SnapshotService, {
    async pauseSandbox(request, call) {
      return { sandbox: await snapshots.pause(checkSandboxId(request.sandboxId), call) };
    },
    async resumeSandbox(request, call) {
      return { sandbox: await snapshots.resume(checkSandboxId(request.sandboxId), call) };
    },
    async createSnapshot(request, call) {
      const { memory } = request;
      const options = {
        memory,
        template: checkTemplate(request.template),
        labels: checkLabels(request.labels),
      };
      return { snapshot: await snapshots.take(checkSandboxId(request.sandboxId), options, call) };
    },
    async listSnapshots({ templates }) {
      return { snapshots: snapshots.list(templates) };
    },
    async getSnapshot(request) {
      return { snapshot: snapshots.get(checkSnapshot(request.snapshot)) };
    },
    async deleteSnapshot(request, call) {
      return { snapshot: await snapshots.remove(checkSnapshot(request.snapshot), call) };
    },
    async *exportSnapshot(request) {
      for await (const data of snapshots.export(checkSnapshot(request.snapshot))) yield { data };
    },
    async importSnapshot(requests, call) {
      const iterator = requests[Symbol.asyncIterator]();
      const opening = await iterator.next();
      if (opening.done) throw invalid("there is no archive");
      const { memory } = opening.value;
      const options = {
        memory,
        template: checkTemplate(opening.value.template),
        labels: checkLabels(opening.value.labels),
      };
      const archive = contentOf(opening.value, iterator);
      return { snapshot: await snapshots.import(archive, options, call) };
    },
    async forkSandbox(request, call) {
      const count = request.count || 1;
      if (count > mostForks) throw invalid(`\`count\` is at most ${mostForks}`);
      return { sandboxes: await snapshots.fork(checkSandboxId(request.sandboxId), count, call) };
    },
  });
}

async function* contentOf(
  first: ImportSnapshotRequest,
  rest: AsyncIterator<ImportSnapshotRequest>,
): AsyncGenerator<Uint8Array> {
  yield first.data;
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    const { template, memory, labels, data } = next.value;
    if (template !== "" || memory || Object.keys(labels).length > 0)
      throw invalid("only the first message says more than `data`");
    yield data;
  }
}

function checkTemplate(name: string): string {
  if (name !== "" && (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name) || name.startsWith("sn_"))) {
    throw invalid("`template` has 1 to 64 letters, digits, `.`, `_`, `-`, and does not begin like an id");
  }
  return name;
}

function checkSnapshot(name: string): string {
  if (name === "") throw invalid("`snapshot` is missing");
  if (name.length > 64) throw invalid("`snapshot` is too long");
  return name;
}
