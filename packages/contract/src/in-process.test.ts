import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./call.ts";
import { CaissonError } from "./errors.ts";
import { EventService } from "./gen/caisson/v1/event_pb.ts";
import { createInProcessTransport } from "./in-process.ts";

function transport(seen: { aborted?: boolean } = {}) {
  const events = serve(EventService, {
    async *subscribeEvents(request, call) {
      call.signal.addEventListener("abort", () => {
        seen.aborted = true;
      });
      for (let seq = request.from + 1n; seq <= 3n; seq++) yield { event: { seq, actor: call.actor } };
    },
    async verifyAudit(request) {
      if (request.from > 9n) throw new CaissonError("INVALID_INPUT", "too far");
      return { intact: true, checked: request.from };
    },
  });
  let ids = 0;
  return createInProcessTransport([events], { actor: "daemon", nextRequestId: () => `r${++ids}` });
}

async function* one<T>(value: T) {
  yield value;
}

test("a unary call reaches the handler and returns a whole message", async () => {
  const answer = await transport().unary(EventService.method.verifyAudit, { from: 4n });
  assert.equal(answer.$typeName, "caisson.v1.VerifyAuditResponse");
  assert.equal(answer.checked, 4n);
});

test("an error of the table arrives as itself", async () => {
  await assert.rejects(
    transport().unary(EventService.method.verifyAudit, { from: 10n }),
    (error) => error instanceof CaissonError && error.code === "INVALID_INPUT",
  );
});

test("a stream arrives in order with the actor of the transport", async () => {
  const seen: string[] = [];
  for await (const { event } of transport().stream(EventService.method.subscribeEvents, one({ from: 1n }))) {
    seen.push(`${event?.seq} ${event?.actor}`);
  }
  assert.deepEqual(seen, ["2 daemon", "3 daemon"]);
});

test("a reader that leaves early aborts the call", async () => {
  const seen: { aborted?: boolean } = {};
  for await (const _ of transport(seen).stream(EventService.method.subscribeEvents, one({}))) break;
  assert.equal(seen.aborted, true);
});
