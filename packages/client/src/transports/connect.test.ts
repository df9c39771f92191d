import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../client.ts";
import { connect } from "../connect.ts";
import { ConnectPeer } from "../testing/connect-peer.ts";
import { FakeDaemon } from "../testing/index.ts";

async function withHttp(
  check: (setup: { client: Client; peer: ConnectPeer; daemon: FakeDaemon }) => Promise<void>,
): Promise<void> {
  const daemon = new FakeDaemon();
  await using peer = await new ConnectPeer(daemon.services()).listen();
  await using client = await connect({ url: peer.url, key: "csn_test" });
  await check({ client, peer, daemon });
}

test("calls of every kind work over HTTP/1.1", () =>
  withHttp(async ({ client, peer }) => {
    const box = await client.create({ labels: { a: "b" } });
    assert.equal(peer.headers.get("authorization"), "Bearer csn_test");
    assert.equal((await box.run(["cat"], { stdin: "in" })).stdout.text, "in");
    const run = await box.exec(["count", "100"]);
    assert.equal((await run.result()).stdout.text.split("\n").length, 101);
    const large = Buffer.alloc(3 * 1024 * 1024, 3);
    assert.equal((await box.files.write("/large", large)).size, large.length);
    assert.ok(large.equals((await box.files.read("/large")).bytes));
    assert.equal(
      (await client.system.health({ traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` })).ready,
      true,
    );
    assert.match(peer.headers.get("traceparent") ?? "", /^00-1+-2+-01$/);
  }));

test("errors arrive with code and next step, from calls and from streams", () =>
  withHttp(async ({ client }) => {
    await assert.rejects(client.sandboxes.get("sb_none"), { code: "SANDBOX_NOT_FOUND" });
    const box = await client.create();
    await assert.rejects(box.run(["nonsense"]), { code: "COMMAND_NOT_FOUND" });
    await assert.rejects(
      box.files
        .write("/large", "x", { ifMatch: "-" })
        .then(() => box.files.write("/large", "", { ifMatch: "-" })),
      {
        code: "ETAG_MISMATCH",
      },
    );
  }));

test("a cut stream goes on where it was", () =>
  withHttp(async ({ client, peer, daemon }) => {
    const box = await client.create();
    const run = await box.exec(["count", "2000"]);
    let text = "";
    let cuts = 0;
    for await (const event of run.output()) {
      if (event.stream === "stdout") text += Buffer.from(event.bytes);
      if (text.length > (cuts + 1) * 2000 && cuts < 3) {
        cuts++;
        peer.cutAll();
      }
    }
    assert.equal(text, Array.from({ length: 2000 }, (_, index) => `${index + 1}\n`).join(""));
    assert.equal(cuts, 3);
    assert.equal(daemon.processes.get(box.id)?.length, 1);
  }));

test("an aborted call ends, and a server that is not ours is told as such", () =>
  withHttp(async ({ client, peer }) => {
    const box = await client.create();
    const run = await box.exec(["wait"]);
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 20);
    await assert.rejects(run.wait({ signal: abort.signal }), { code: "CANCELLED" });
    await run.signal("SIGKILL");
    await using elsewhere = await connect({ url: `${peer.url}/nowhere` });
    await assert.rejects(elsewhere.system.health(), { code: "METHOD_UNKNOWN" });
  }));
