// Our own server, held to the suite on its socket and over TCP; and servers that break a rule, which it must notice.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { startDaemon, type TestDaemon } from "../../test/support/daemon.ts";
import { eventually } from "../../test/support/eventually.ts";
import { ending } from "../../test/support/launcher.ts";

interface Outcome {
  id: string;
  outcome: string;
  why?: string;
}

async function hold(...args: string[]): Promise<{ code: number | null; outcomes: Outcome[] }> {
  const program = join(import.meta.dirname, "../run.ts");
  const said = await ending(
    spawn(process.execPath, [program, "--json", ...args], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  assert.notEqual(said.out, "", said.err);
  return { code: said.code, outcomes: JSON.parse(said.out).outcomes };
}

const failed = (outcomes: Outcome[]) => outcomes.filter(({ outcome }) => outcome === "failed");
const skipped = (outcomes: Outcome[]) =>
  outcomes.filter(({ outcome }) => outcome === "skipped").map(({ id }) => id);

describe("conformance", { timeout: 600_000 }, () => {
  let daemon: TestDaemon;
  before(async () => {
    daemon = await startDaemon({ env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
  });
  after(() => daemon[Symbol.asyncDispose]());

  it("of our daemon on its socket", async () => {
    const { code, outcomes } = await hold("--socket", daemon.socket);
    assert.deepEqual(failed(outcomes), []);
    assert.deepEqual(skipped(outcomes), ["auth.keys", "auth.origin"]);
    assert.equal(code, 0);
  });

  it("of our daemon over TCP, with a key", async () => {
    const found = await eventually(
      () => /"address":"(http:[^"]+)"/.exec(daemon.log()),
      (match) => match !== null,
    );
    await using client = await connect({ socket: daemon.socket });
    const { secret } = await client.keys.create("conformance", { scopes: ["read", "write", "all"] });
    const { code, outcomes } = await hold("--url", found![1]!, "--key", secret);
    assert.deepEqual(failed(outcomes), []);
    assert.deepEqual(skipped(outcomes), ["faces.ttrpc"]);
    assert.equal(code, 0);
  });

  const lies: [what: string, only: string, (body: string) => string][] = [
    ["an error of another code", "sandboxes.life", (body) => body.replace("SANDBOX_ENDED", "PROCESS_ENDED")],
    [
      "an error with a stack trace",
      "sandboxes.life",
      (body) => body.replace(/"message":"/, "$&x\\n    at f (x.ts:1) "),
    ],
    ["events without numbers", "streams.run", (body) => body.replace(/^id: .*\n/gm, "")],
    ["output that is lost", "streams.resume", (body) => body.replace(/line 150\\n/, "")],
    ["output that comes twice", "streams.resume", (body) => body.replace(/line 150\\n/, "$&$&")],
    [
      "a cut that is not told",
      "sizes.output",
      (body) => body.replace('"truncated":true', '"truncated":false'),
    ],
  ];
  for (const [what, only, lie] of lies) {
    it(`notices ${what}`, async () => {
      await using server = await lyingServer(daemon.socket, lie);
      const { code, outcomes } = await hold("--url", server.url, "--only", only);
      assert.equal(code, 1);
      assert.equal(failed(outcomes).length, 1);
    });
  }
});

/** Passes everything on to the daemon, and what it answers back, changed. */
async function lyingServer(socketPath: string, lie: (body: string) => string) {
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const onwards = httpRequest({ socketPath, path: url, method, headers }, async (answer) => {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      const body = lie(Buffer.concat(parts).toString());
      const { "content-length": _, "transfer-encoding": __, ...rest } = answer.headers;
      response.writeHead(answer.statusCode!, rest).end(body);
    });
    onwards.on("error", () => response.destroy());
    request.pipe(onwards);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
