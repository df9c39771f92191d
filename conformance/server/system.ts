import { rules } from "./rules.ts";
import { Server } from "./server.ts";
import { type Case, expect, same } from "./suite.ts";

export const system: Case[] = [
  {
    id: "system.capabilities",
    must: "advertise the contract and the numbers of spec/rules.json",
    async run(server) {
      const answer = await server.call("/v1/capabilities");
      same(
        [answer.contract, answer.revision],
        [rules.contract.name, rules.contract.revision],
        "the contract",
      );
      for (const [name, value] of Object.entries(rules.sizes))
        same(answer.limits[`sizes.${name}`], String(value), name);
      expect(
        answer.drivers.some(({ usable }: { usable: boolean }) => usable),
        "a usable driver",
      );
      same((await server.call("/v1/health")).ready, true, "health");
    },
  },
  {
    id: "system.openapi",
    must: "serve its own description, in which every route of this suite is",
    async run(server) {
      const document = await server.call("/openapi.json");
      expect(String(document.openapi).startsWith("3.1"), "OpenAPI 3.1");
      for (const path of [
        "/v1/run",
        "/v1/run/stream",
        "/v1/sandboxes",
        "/v1/sandboxes/{sandbox_id}:exec",
        "/v1/events",
      ]) {
        expect(Object.hasOwn(document.paths, path), path);
      }
    },
  },
  {
    id: "system.deadline",
    must: "answer DEADLINE_EXCEEDED when the caller's Request-Timeout-Ms has passed, at once for 0",
    async run(server) {
      const box = await server.shared();
      for (const ms of ["0", "150"]) {
        await server.refuses("DEADLINE_EXCEEDED", `/v1/sandboxes/${box}:exec`, {
          headers: { "request-timeout-ms": ms },
          body: { command: { argv: ["sleep", "5"] } },
        });
      }
      await server.refuses("INVALID_INPUT", "/v1/health", { headers: { "request-timeout-ms": "soon" } });
    },
  },
  {
    id: "auth.keys",
    must: "let nobody without a key do more than ask how it is, over the network",
    on: "tcp",
    async run({ address }) {
      for (const [key, code] of [
        [undefined, "UNAUTHENTICATED"],
        ["csn_nonsense", "UNAUTHENTICATED"],
        ["a.b.c", "UNAUTHENTICATED"],
      ] as const) {
        const stranger = new Server({ ...address, key });
        await stranger.refuses(code, "/v1/sandboxes");
      }
      same(
        (await new Server({ ...address, key: undefined }).call("/v1/health")).ready,
        true,
        "health is public",
      );
    },
  },
  {
    id: "auth.origin",
    must: "refuse requests under a foreign name and from foreign web pages, over the network",
    on: "tcp",
    async run(server) {
      for (const headers of [
        { host: "evil.example" },
        { host: "127.0.0.1.evil.example" },
        { origin: "https://evil.example" },
        { origin: "null" },
        { "sec-fetch-site": "cross-site" },
      ]) {
        await server.refuses("FOREIGN_ORIGIN", "/v1/health", { headers });
      }
    },
  },
];
