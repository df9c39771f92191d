import { randomUUID } from "node:crypto";
import { rules } from "./rules.ts";
import { type Case, expect, same } from "./suite.ts";

export const sandboxes: Case[] = [
  {
    id: "sandboxes.life",
    must: "create, describe, extend, end and forget a sandbox",
    async run(server) {
      const box = await server.box({ labels: { team: "blue" } });
      expect(/^sb_[A-Za-z0-9]{16}$/.test(box), `an id, not ${box}`);
      const { sandbox } = await server.call(`/v1/sandboxes/${box}`);
      same([sandbox.state, sandbox.labels], ["SANDBOX_STATE_READY", { team: "blue" }], "the sandbox");
      expect(sandbox.enforced.mechanisms.length > 0, "what is enforced");
      const before = Date.parse(sandbox.expires_at);
      const extended = await server.call(`/v1/sandboxes/${box}:extend`, { body: { idle_ttl_s: 7200 } });
      expect(Date.parse(extended.sandbox.expires_at) > before, "a later end");
      const { stats } = await server.call(`/v1/sandboxes/${box}/stats`);
      expect(stats.source !== "", "statistics say how they were measured");
      const ended = await server.call(`/v1/sandboxes/${box}`, { method: "DELETE" });
      same([ended.sandbox.state, ended.sandbox.end_reason], ["SANDBOX_STATE_ENDED", "deleted"], "its end");
      expect(rules.end_reasons.includes(ended.sandbox.end_reason), "a reason of the table");
      await server.refuses("SANDBOX_ENDED", `/v1/sandboxes/${box}:exec`, {
        body: { command: { argv: ["true"] } },
      });
      await server.call(`/v1/sandboxes/${box}`, { method: "DELETE" });
      await server.refuses("SANDBOX_NOT_FOUND", `/v1/sandboxes/${box}`);
    },
  },
  {
    id: "sandboxes.list",
    must: "list by labels, newest first, in pages",
    async run(server) {
      const mark = randomUUID();
      const made: string[] = [];
      for (let count = 0; count < 3; count++)
        made.unshift(await server.box({ labels: { mark, n: String(count) } }));
      const query = `/v1/sandboxes?labels[mark]=${mark}`;
      const ids = (answer: { sandboxes: { id: string }[] }) => answer.sandboxes.map(({ id }) => id);
      same(ids(await server.call(query)), made, "newest first");
      const seen: string[] = [];
      for (let token = ""; ; ) {
        const page = await server.call(
          `${query}&page_size=2${token && `&page_token=${encodeURIComponent(token)}`}`,
        );
        expect(page.sandboxes.length <= 2, "a page of two");
        seen.push(...ids(page));
        token = page.next_page_token;
        if (token === "") break;
      }
      same(seen, made, "all pages together");
      await server.call(`/v1/sandboxes/${made[0]}`, { method: "DELETE" });
      same(ids(await server.call(query)).includes(made[0]!), false, "ended ones are left out");
      same(ids(await server.call(`${query}&all=true`)).includes(made[0]!), true, "unless asked for");
    },
  },
  {
    id: "sandboxes.sessions",
    must: "keep a session's sandbox between runs, and end it when it is closed",
    async run(server) {
      const session = `conformance-${randomUUID().slice(0, 8)}`;
      const run = (script: string) =>
        server.call("/v1/run", { body: { session, command: { argv: ["sh", "-c", script] } } });
      await run("echo kept > /tmp/kept");
      same((await run("cat /tmp/kept")).stdout.text, "kept\n", "what the first run left");
      const { sandbox } = await server.call(`/v1/sandboxes/session:${session}`);
      same(sandbox.session, session, "the sandbox by its session");
      await server.call(`/v1/sessions/${session}`, { method: "DELETE" });
      await server.refuses("SESSION_NOT_FOUND", `/v1/sessions/${session}`, { method: "DELETE" });
    },
  },
  {
    id: "sandboxes.run_ends",
    must: "end a run's own sandbox with its command",
    async run(server) {
      const { sandbox_id } = await server.call("/v1/run", { body: { command: { argv: ["true"] } } });
      for (let look = 0; ; look++) {
        const { sandbox } = await server.call(`/v1/sandboxes/${sandbox_id}`);
        if (sandbox.state === "SANDBOX_STATE_ENDED")
          return same(sandbox.end_reason, "run_finished", "why it ended");
        expect(look < 200, "the sandbox of a run ends");
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    },
  },
];
