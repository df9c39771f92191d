import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type EventSchema, EventService, type ServedService, serve } from "@caisson/contract";
import type { Store, StoredEvent } from "@caisson/store";
import { checkPosition, checkSandboxId, invalid } from "./check.ts";

/** Events read at once when a caller wants what is there and no more. */
const pageEvents = 500;
const maxTypes = 64;

export function eventService(store: Store): ServedService {
  return serve(EventService, {
    async *subscribeEvents(request, call) {
      const from = checkPosition(request.from, "from");
      if (request.types.length > maxTypes) throw invalid(`there may be at most ${maxTypes} types`);
      const query = {
        from,
        ...(request.sandboxId === "" ? {} : { sandboxId: checkSandboxId(request.sandboxId) }),
        ...(request.types.length === 0 ? {} : { types: request.types }),
      };
      const events = request.noFollow ? kept(store, query) : store.subscribe(query, call.signal);
      for await (const event of events) yield { event: toEvent(event) };
    },
    async verifyAudit(request) {
      const result = await store.verify(checkPosition(request.from, "from"));
      return {
        intact: result.intact,
        checked: BigInt(result.checked),
        brokenAt: BigInt(result.brokenAt),
        reason: result.reason,
        head: result.head,
      };
    },
  });
}

function* kept(
  store: Store,
  query: { from: number; sandboxId?: string; types?: string[] },
): Generator<StoredEvent> {
  const head = store.head;
  for (let from = query.from; ; ) {
    const page = store.read({ ...query, from, limit: pageEvents });
    for (const event of page) {
      if (event.seq > head) return;
      yield event;
    }
    if (page.length < pageEvents) return;
    from = page[page.length - 1]!.seq;
  }
}

export function toEvent(event: StoredEvent): MessageInitShape<typeof EventSchema> {
  return {
    seq: BigInt(event.seq),
    at: timestampFromMs(event.at),
    type: event.type,
    actor: event.actor,
    sandboxId: event.sandboxId,
    processId: event.processId,
    data: event.data as JsonObject,
    hash: event.hash,
  };
}
