import { CaissonError, rules, type Sandbox } from "@caisson/contract";
import type { EngineContext } from "./context.ts";
import type { ListQuery } from "./engine.ts";
import { toSandbox } from "./messages.ts";
import { kinds, type SandboxRecord } from "./records.ts";

/** Sandboxes that fit a query, newest first, a page at a time. */
export function listSandboxes(
  context: EngineContext,
  query: ListQuery,
): { sandboxes: Sandbox[]; nextPageToken: string } {
  const size = query.pageSize || rules.sizes.page_size_default;
  if (size > rules.sizes.page_size_max) {
    throw new CaissonError("INVALID_INPUT", `page_size is at most ${rules.sizes.page_size_max}`);
  }
  const boxes = [...context.boxes.values()].filter((box) => query.all || !box.over);
  const records = boxes.map((box) => box.record);
  // One whose end is being written is still among the living.
  if (query.all)
    for (const [id, record] of context.store.scan<SandboxRecord>(kinds.ended))
      if (!context.boxes.has(id)) records.push(record);
  const after = query.pageToken === "" ? undefined : parseToken(query.pageToken);
  const found = records
    .filter((record) => query.owner === undefined || record.actor === query.owner)
    .filter((record) => hasLabels(record, query.labels) && (!after || isBehind(record, after)))
    .sort((a, b) => (isBehind(a, b) ? 1 : -1));
  const page = found.slice(0, size);
  const last = page.at(-1);
  return {
    sandboxes: page.map((record) => messageOf(context, record)),
    nextPageToken: last && found.length > size ? `${last.createdAt}.${last.id}` : "",
  };
}

/** A sandbox's message, living or ended. */
export function messageOf(context: EngineContext, record: SandboxRecord): Sandbox {
  const box = context.boxes.get(record.id);
  if (box) return box.message();
  // Of an ended one, only what came at its end and later is not in its record.
  const latest = context.store.read({ from: record.seq, sandboxId: record.id }).at(-1)?.seq ?? record.seq;
  return toSandbox(record, context.reports.find(record.enforcement), { seq: latest, expiresAt: 0 });
}

interface Place {
  createdAt: number;
  id: string;
}

/** Comes after `other` in a listing: it is older, or of the same moment with a smaller id. */
function isBehind(record: Place, other: Place): boolean {
  if (record.createdAt !== other.createdAt) return record.createdAt < other.createdAt;
  return record.id < other.id;
}

function parseToken(token: string): Place {
  const match = /^(\d{1,16})\.(sb_[0-9a-z]{16})$/.exec(token);
  if (match) return { createdAt: Number(match[1]), id: match[2]! };
  throw new CaissonError("INVALID_INPUT", "page_token is not one that this server gave");
}

function hasLabels(record: SandboxRecord, labels: Record<string, string>): boolean {
  return Object.entries(labels).every(([key, value]) => record.labels[key] === value);
}
