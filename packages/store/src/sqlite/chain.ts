import { hash } from "node:crypto";
import type { StoredEvent } from "../store.ts";

/** What the first event of a log chains to. */
export const genesis: Uint8Array = new Uint8Array(32);

/**
 * JSON with sorted keys and no spaces (RFC 8785 for the values that JSON can carry), so that one
 * value has one spelling and anybody can compute an event's hash from what the API shows of it.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.toWellFormed());
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([key, member]) => `${canonicalJson(key)}:${canonicalJson(member)}`).join(",")}}`;
}

export type HashedFields = Omit<StoredEvent, "hash" | "data"> & { dataJson: string };

/** SHA-256 over the previous event's hash and this event: `[seq, at, type, actor, sandbox, process, data]`. */
export function chainHash(previous: Uint8Array, event: HashedFields): Uint8Array {
  const head = JSON.stringify([
    event.seq,
    event.at,
    event.type,
    event.actor,
    event.sandboxId,
    event.processId,
  ]);
  const text = Buffer.from(`${head.slice(0, -1)},${event.dataJson}]`);
  return hash("sha256", Buffer.concat([previous, text]), "buffer");
}
