import { announce } from "./http.ts";
import { rules } from "./rules.ts";
import { type Case, expect, same } from "./suite.ts";

const json = { "content-type": "application/json" };

export const input: Case[] = [
  {
    id: "input.json",
    must: "refuse unknown fields, wrong types, other spellings, bad UTF-8, deep nesting and duplicate meanings",
    async run(server) {
      const bodies: (string | Uint8Array)[] = [
        '{"nonsense":1}',
        '{"command":{"argv":["true"],"timeoutMs":5}}',
        '{"command":{"argv":"true"}}',
        '{"command":{"argv":[1]}}',
        '{"command":{"argv":["true"],"timeout_ms":-1}}',
        '{"command":{"argv":["true"],"timeout_ms":1.5}}',
        '{"command":{"argv":["true"],"stdin":"a","stdin_bytes":"YQ=="}}',
        '{"command":{"argv":["true"],"stdin_bytes":"?"}}',
        '{"__proto__":{"command":{"argv":["true"]}}}',
        '{"spec":{"labels":{"__proto__":"x"}},"command":{"argv":["true"]}}',
        '{"command":',
        "[]",
        "null",
        `{"command":${"[".repeat(rules.sizes.json_depth! + 10)}`,
        `${'{"command":'.repeat(rules.sizes.json_depth! + 10)}1${"}".repeat(rules.sizes.json_depth! + 10)}`,
        Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
      ];
      for (const body of bodies) {
        await server.refuses("INVALID_INPUT", "/v1/run", { method: "POST", headers: json, body });
      }
      expect(({} as Record<string, unknown>).command === undefined, "no prototype was touched");
    },
  },
  {
    id: "input.content",
    must: "refuse other content types and compressed bodies",
    async run(server) {
      const body = '{"command":{"argv":["true"]}}';
      for (const headers of [
        { "content-type": "text/plain" },
        { "content-type": "application/x-www-form-urlencoded" },
        { ...json, "content-encoding": "gzip" },
      ]) {
        await server.refuses("INVALID_INPUT", "/v1/run", { method: "POST", headers, body });
      }
    },
  },
  {
    id: "input.paths",
    must: "take an encoded separator or traversal in a URL for what it is: part of a name that is not there",
    async run(server) {
      for (const id of ["..%2f..%2fetc", "%2e%2e", "a%00b", "sb_%0d%0aX:%20y", "session:%2e%2e%2f"]) {
        const { status, json: answer } = await server.send(`/v1/sandboxes/${id}`);
        expect(status >= 400 && status < 500, `${id}: ${status}`);
        expect(
          ["INVALID_INPUT", "SANDBOX_NOT_FOUND", "SESSION_NOT_FOUND", "NOT_FOUND"].includes(
            answer.error.code,
          ),
          answer.error.code,
        );
      }
      await server.refuses("NOT_FOUND", "/v1/nothing");
      await server.refuses("NOT_FOUND", "/v1/run", { method: "DELETE" });
      await server.refuses("INVALID_INPUT", "/v1/sandboxes?nonsense=1");
      await server.refuses("INVALID_INPUT", "/v1/sandboxes?page_size=x");
    },
  },
  {
    id: "input.spec",
    must: "refuse what a sandbox cannot have, naming the field",
    async run(server) {
      const labels = Object.fromEntries(
        Array.from({ length: rules.sizes.labels! + 1 }, (_, i) => [`l${i}`, "x"]),
      );
      for (const spec of [
        { labels },
        { labels: { "UPPER CASE": "x" } },
        { env: { "A=B": "x" } },
        { env: { A: "nul\u0000" } },
        { syscalls: ["everything"] },
      ]) {
        const { json: answer } = await server.send("/v1/sandboxes", { body: { spec } });
        same(answer?.error?.code, "INVALID_INPUT", JSON.stringify(spec).slice(0, 60));
      }
    },
  },
  {
    id: "sizes.request",
    must: "refuse a body that announces itself as too large before it is sent",
    async run(server) {
      const box = await server.shared();
      const post = {
        method: "POST",
        headers: { ...json, "content-length": String(rules.sizes.request_body_bytes! + 1) },
      };
      same((await announce(server.address, "/v1/run", post)).json.error.code, "TOO_LARGE", "JSON");
      const put = {
        method: "PUT",
        headers: { "content-length": String(rules.sizes.file_transfer_bytes! + 1) },
      };
      const file = `/v1/sandboxes/${box}/files/content?path=/tmp/large`;
      same((await announce(server.address, file, put)).json.error.code, "TOO_LARGE", "a file");
    },
  },
  {
    id: "sizes.output",
    must: "cut the output of a batch at its bound and say so",
    async run(server) {
      const box = await server.shared();
      const { stdout, exit } = await server.sh(box, `yes | head -c ${rules.sizes.exec_output_bytes! + 1000}`);
      same([stdout.text.length, exit.truncated], [rules.sizes.exec_output_bytes, true], "the output");
      same((await server.sh(box, "echo x")).exit.truncated, false, "a small one");
    },
  },
  {
    id: "sizes.listing",
    must: "cut a listing at its bound and say so",
    async run(server) {
      const box = await server.box();
      const script =
        "mkdir /tmp/many; cd /tmp/many; n=$(printf %0230d 0); i=0; while [ $i -lt 40000 ]; do : > $i$n; i=$((i+1)); done";
      await server.sh(box, script, { timeout_ms: 120_000 });
      const answer = await server.send(`/v1/sandboxes/${box}/files?path=/tmp/many`);
      same([answer.status, answer.json.truncated], [200, true], "the listing");
      expect(answer.json.files.length > 1000 && answer.json.files.length < 40_000, "a part of it");
    },
  },
];
