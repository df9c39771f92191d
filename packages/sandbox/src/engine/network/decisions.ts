import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CaissonError, type NetworkDecision, NetworkDecisionSchema, Verdict } from "@caisson/contract";
import type { Store, StoredEvent } from "@caisson/store";
import { howToAllow } from "../../egress/refusal.ts";

/** How much of the log is looked at in one piece, backwards. */
const pieceLength = 5000;
/** How far back one page looks at most. */
const mostPieces = 40;

export interface DecisionQuery {
  sandboxId: string;
  refusedOnly: boolean;
  pageSize: number;
  pageToken: string;
}

/** Decisions from the log, newest first. */
export function listDecisions(
  store: Store,
  query: DecisionQuery,
): { decisions: NetworkDecision[]; nextPageToken: string } {
  let before = query.pageToken === "" ? store.head + 1 : tokenOf(query.pageToken);
  const decisions: NetworkDecision[] = [];
  const closed = new Map<string, StoredEvent>();
  for (let piece = 0; piece < mostPieces && before > 1; piece++) {
    const from = Math.max(0, before - 1 - pieceLength);
    for (const event of piecesOf(store, query.sandboxId, from, before).reverse()) {
      if (event.type === "network.closed") closed.set(connectionOf(event), event);
      const decision = toDecision(event, closed, query.refusedOnly);
      if (!decision) continue;
      decisions.push(decision);
      if (decisions.length === query.pageSize) return { decisions, nextPageToken: String(event.seq) };
    }
    before = from + 1;
  }
  return { decisions, nextPageToken: before > 1 ? String(before) : "" };
}

/** Everything about the network between two numbers, in order. */
function piecesOf(store: Store, sandboxId: string, from: number, before: number): StoredEvent[] {
  const found: StoredEvent[] = [];
  for (let at = from; ; ) {
    const page = store.read({ from: at, types: ["network."], ...(sandboxId ? { sandboxId } : {}) });
    const within = page.filter(({ seq }) => seq < before);
    found.push(...within);
    if (within.length < page.length || page.length === 0) return found;
    at = page.at(-1)!.seq;
  }
}

function toDecision(
  event: StoredEvent,
  closed: Map<string, StoredEvent>,
  refusedOnly: boolean,
): NetworkDecision | undefined {
  const { type, data } = event;
  const allowed = type === "network.allowed" || type === "network.failed";
  if (type !== "network.refused" && (refusedOnly || !allowed)) return undefined;
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const end = type === "network.allowed" ? closed.get(connectionOf(event)) : undefined;
  const add = text(data.add);
  const reason = text(end?.data.cut) || text(data.reason);
  return create(NetworkDecisionSchema, {
    seq: BigInt(event.seq),
    at: timestampFromMs(event.at),
    sandboxId: event.sandboxId,
    verdict: allowed ? Verdict.ALLOWED : Verdict.REFUSED,
    name: text(data.name),
    port: Number(data.port ?? 0),
    address: text(data.address),
    rule: text(data.rule),
    reason: add ? `${reason}${howToAllow(add, event.sandboxId)}` : reason,
    via: text(data.via),
    count: Number(data.count ?? 1),
    sentBytes: BigInt(Number(end?.data.sent ?? 0)),
    receivedBytes: BigInt(Number(end?.data.received ?? 0)),
    open: type === "network.allowed" && end === undefined,
  });
}

function connectionOf({ sandboxId, data }: StoredEvent): string {
  return `${sandboxId} ${data.connection}`;
}

function tokenOf(token: string): number {
  if (/^\d{1,15}$/.test(token)) return Number(token);
  throw new CaissonError("INVALID_INPUT", "`page_token` is not one that this server gave");
}
