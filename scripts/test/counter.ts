// A reporter for node:test that writes one JSON line per finished test, for the total at the end.
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import type { Outcome } from "./tally.ts";

export default async function* count(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { name, details, skip, todo, file } = event.data;
    // A suite that is skipped has no tests that could say so.
    if ((details.type === "suite" && skip === undefined) || todo !== undefined) continue;
    const outcome: Outcome = {
      outcome: event.type === "test:fail" ? "failed" : skip !== undefined ? "skipped" : "passed",
      name: file === undefined ? name : `${relative(process.cwd(), file)}: ${name}`,
      ...(typeof skip === "string" ? { reason: skip } : {}),
    };
    yield `${JSON.stringify(outcome)}\n`;
  }
}
