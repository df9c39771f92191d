import { create } from "@bufbuild/protobuf";
import { type UsageItem, UsageItemSchema } from "@caisson/contract";
import { cacheUsage, pruneCaches } from "./caches.ts";
import type { EngineContext } from "./context.ts";
import { forgetSandbox } from "./forget.ts";
import { hasChanges } from "./layer.ts";
import { kinds, type SandboxRecord } from "./records.ts";

/** What is kept on disk, and how much of it `prune` would free. */
export async function usageItems(context: EngineContext): Promise<UsageItem[]> {
  const ended = endedRecords(context);
  const living = [...context.boxes.values()].map((box) => box.record);
  const [endedBytes, livingBytes] = await Promise.all([bytesOf(context, ended), bytesOf(context, living)]);
  const caches = await cacheUsage(context, "caches");
  const agents = await cacheUsage(context, "agents");
  const item = (what: string, bytes: number, count: number, freeable: number) =>
    create(UsageItemSchema, { what, bytes: BigInt(bytes), count, freeableBytes: BigInt(freeable) });
  return [
    item("sandboxes", livingBytes, living.length, 0),
    item("ended", endedBytes, ended.length, endedBytes),
    item("caches", caches.bytes, caches.count, caches.freeable),
    // Only `prune` with `agents` frees these.
    item("agents", agents.bytes, agents.count, 0),
    item("images", imageBytes(context), context.images.list().length, 0),
    item("log", context.store.size(), context.store.head, 0),
  ];
}

/** Each layer once, however many images share it. */
function imageBytes(context: EngineContext): number {
  const layers = new Map(
    context.images
      .list()
      .flatMap((image) => image.layers.map(({ digest, bytes }) => [digest, bytes] as const)),
  );
  return [...layers.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Forgets every ended sandbox but those whose changes nobody has applied or discarded, and frees caches that nobody uses. With
 * `agents` also agents' directories: their conversations cannot be downloaded again.
 */
export async function prune(
  context: EngineContext,
  actor: string,
  agents: boolean,
): Promise<{ sandboxes: number; bytes: bigint }> {
  let bytes = 0;
  const ended: SandboxRecord[] = [];
  for (const record of endedRecords(context)) {
    if (!record.place || !hasChanges(context.dirOf(record.place))) ended.push(record);
  }
  for (const record of ended) bytes += await forgetSandbox(context, record, actor);
  bytes += await pruneCaches(context, "caches");
  if (agents) bytes += await pruneCaches(context, "agents");
  return { sandboxes: ended.length, bytes: BigInt(bytes) };
}

function endedRecords(context: EngineContext): SandboxRecord[] {
  return [...context.store.scan<SandboxRecord>(kinds.ended)].map(([, record]) => record);
}

async function bytesOf(context: EngineContext, records: readonly SandboxRecord[]): Promise<number> {
  let bytes = 0;
  for (const record of records) {
    if (record.place) bytes += await context.parts.trees.size(context.dirOf(record.place)).catch(() => 0);
  }
  return bytes;
}
