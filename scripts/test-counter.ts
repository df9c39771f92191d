// A reporter for node:test that writes one JSON line per finished test, for the total at the end.
import type { TestEvent } from "node:test/reporters";

export default async function* count(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { name, details, skip, todo, file } = event.data;
    if (details.type === "suite" || todo !== undefined) continue;
    const outcome = event.type === "test:fail" ? "failed" : skip !== undefined ? "skipped" : "passed";
    yield `${JSON.stringify({ outcome, name, file, reason: typeof skip === "string" ? skip : undefined })}\n`;
  }
}
