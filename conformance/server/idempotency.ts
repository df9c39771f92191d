import { randomUUID } from "node:crypto";
import { type Case, same } from "./suite.ts";

export const idempotency: Case[] = [
  {
    id: "idempotency.create",
    must: "return the first sandbox to a repeated create, by field or header",
    async run(server) {
      const key = randomUUID();
      const body = { idempotency_key: key, spec: { labels: { a: "1" } } };
      const first = await server.call("/v1/sandboxes", { body });
      const { idempotency_key: _, ...without } = body;
      const again = await server.call("/v1/sandboxes", {
        body: without,
        headers: { "idempotency-key": key },
      });
      same(again.sandbox.id, first.sandbox.id, "the sandbox");
      const other = { ...body, spec: { labels: { a: "2" } } };
      await server.refuses("IDEMPOTENCY_CONFLICT", "/v1/sandboxes", { body: other });
      await server.send(`/v1/sandboxes/${first.sandbox.id}?forget=true`, { method: "DELETE" });
    },
  },
  {
    id: "idempotency.exec",
    must: "run a command once under one key, also when the calls come at the same time",
    async run(server) {
      const box = await server.shared();
      const key = randomUUID();
      const argv = ["sh", "-c", "sleep 0.2; echo ran >> /tmp/once; cat /tmp/once"];
      const calls = await Promise.all([1, 2, 3].map(() => server.exec(box, argv, {}, key)));
      calls.push(await server.exec(box, argv, {}, key));
      for (const { stdout, process_id } of calls) {
        same([stdout.text, process_id], ["ran\n", calls[0].process_id], "each answer");
      }
      await server.refuses("IDEMPOTENCY_CONFLICT", `/v1/sandboxes/${box}:exec`, {
        body: { idempotency_key: key, command: { argv: ["true"] } },
      });
    },
  },
  {
    id: "idempotency.run",
    must: "give a repeated run the first one's result, also by a stream",
    async run(server) {
      const body = { idempotency_key: randomUUID(), command: { argv: ["sh", "-c", "date +%s%N; exit 4"] } };
      const [first, second] = [
        await server.call("/v1/run", { body }),
        await server.call("/v1/run", { body }),
      ];
      same(
        [second.sandbox_id, second.stdout, second.exit.code],
        [first.sandbox_id, first.stdout, 4],
        "the result",
      );
    },
  },
  {
    id: "idempotency.keys",
    must: "take keys of 1 to 128 printable ASCII characters only",
    async run(server) {
      const call = (idempotency_key: string) => ({ body: { idempotency_key, command: { argv: ["true"] } } });
      same((await server.call("/v1/run", call("!".padEnd(128, "k")))).exit.code, 0, "128 characters");
      for (const key of ["k".repeat(129), "a b\n", "ü", "a\u0000"]) {
        await server.refuses("INVALID_INPUT", "/v1/run", call(key));
      }
    },
  },
];
