// Two keys of one daemon: what one has made is not there for the other, by any call.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { DescMethod } from "@bufbuild/protobuf";
import { type Box, type Client, connect } from "@caisson/client";
import * as contract from "@caisson/contract";
import { ErrorInfoSchema, fromDetails } from "@caisson/contract/status";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { self, startDaemon, type TestDaemon, temporaryDirectory } from "../../support/daemon.ts";
import { refused } from "../../support/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { busyboxLayer, writeLayout } from "../../support/oci-image.ts";

const services = Object.values(contract).filter(
  (each) => typeof each === "object" && each !== null && "kind" in each && each.kind === "service",
) as { methods: DescMethod[] }[];
const aboutSandboxes = services
  .flatMap(({ methods }) => methods)
  .filter(({ input }) => input.fields.some(({ name }) => name === "sandbox_id"));

describe("keys of one daemon", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let owner: Client;
  let transport: Transport;
  const clients: Client[] = [];
  const secrets: Record<string, string> = {};
  const as = async (name: string, scopes: ("read" | "write" | "all")[]): Promise<Client> => {
    secrets[name] = (await owner.keys.create(name, { scopes })).secret;
    const client = await connect({ url: url.origin, key: secrets[name]! });
    clients.push(client);
    return client;
  };
  let url: URL;
  let first: Client;
  let second: Client;
  let box: Box;
  before(async () => {
    daemon = await startDaemon({ env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
    owner = await connect({ socket: daemon.socket });
    const found = await eventually(
      () => /"address":"(http:[^"]+)"/.exec(daemon.log()),
      (match) => match !== null,
    );
    url = new URL(found![1]!);
    transport = createGrpcTransport({ baseUrl: url.origin });
    first = await as("first", ["read", "write"]);
    second = await as("second", ["read", "write"]);
    box = await first.create({ labels: { of: "first" } });
  });
  after(async () => {
    for (const client of [...clients, owner]) await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  /** The error that a call ends with. */
  async function codeOf(method: DescMethod, key: string, request: Record<string, unknown>): Promise<string> {
    const headers = { authorization: `Bearer ${secrets[key]}` };
    const requests = (async function* () {
      yield request;
    })();
    try {
      if (method.methodKind === "unary")
        await transport.unary(method as never, undefined, 20_000, headers, request as never);
      else {
        const { message } = await transport.stream(
          method as never,
          undefined,
          20_000,
          headers,
          requests as never,
        );
        for await (const _ of message) break;
      }
      return "none";
    } catch (thrown) {
      assert.ok(thrown instanceof ConnectError, String(thrown));
      return fromDetails(thrown.code, thrown.rawMessage, thrown.findDetails(ErrorInfoSchema)).code;
    }
  }

  it("do not find each other's sandboxes by any call that names one", async () => {
    assert.ok(aboutSandboxes.length > 30, String(aboutSandboxes.length));
    for (const method of aboutSandboxes)
      assert.equal(await codeOf(method, "second", { sandboxId: box.id }), "SANDBOX_NOT_FOUND", method.name);
    assert.equal((await box.run(["echo", "alive"])).stdout.text, "alive\n");
  });

  it("do not list them, nor their events, snapshots and sessions", async () => {
    const session = await first.sessions.open("mine");
    const { id: snapshot } = await first.snapshots.take(box.id, { template: "kept" });
    const seen = async (client: Client) => {
      const ids: string[] = [];
      for await (const { id } of client.sandboxes.list()) ids.push(id);
      for await (const { sandboxId } of client.events.subscribe({ follow: false }))
        if (sandboxId) ids.push(sandboxId);
      ids.push(...(await client.sessions.list()).map(({ sandbox }) => sandbox.id));
      ids.push(...(await client.snapshots.list()).map((each) => each.id));
      return new Set(ids);
    };
    assert.deepEqual([...(await seen(second))], []);
    for (const client of [first, owner, await as("auditor", ["read", "all"])])
      assert.deepEqual(await seen(client), new Set([box.id, session.id, snapshot]));
    await refused("SESSION_NOT_FOUND", second.sandboxes.get("session:mine"));
    const own = await second.create();
    await refused("FORBIDDEN", second.snapshots.take(own.id, { template: "kept" }));
    const archive = Buffer.concat(await Array.fromAsync(first.snapshots.export("kept")));
    const importing = (options: object) => second.snapshots.import(pieces(archive), options);
    await refused("FORBIDDEN", importing({}));
    await refused("FORBIDDEN", importing({ template: "mine", labels: { a: "1" } }));
    const kept = await first.snapshots.get("kept");
    assert.deepEqual([kept.id, kept.labels], [snapshot, {}], "another has changed nothing of it");
    assert.equal((await second.snapshots.list()).length, 0);
    await own.delete();
    for (const name of [snapshot, "kept"]) {
      await refused("SNAPSHOT_NOT_FOUND", second.snapshots.get(name));
      await refused("SNAPSHOT_NOT_FOUND", second.create({ snapshot: name }));
      await refused("SNAPSHOT_NOT_FOUND", second.snapshots.delete(name));
    }
    await refused("SESSION_CONFLICT", second.sessions.open("MINE"));
    await refused("SESSION_CONFLICT", second.run(["true"], { session: "mine" }));
    await refused("SESSION_NOT_FOUND", second.sessions.close("mine"));
    assert.equal((await first.run(["echo", "still"], { session: "mine" })).stdout.text, "still\n");
  });

  it("use each other's images, and replace or remove only their own", async () => {
    const dir = temporaryDirectory(self());
    const imported = async (client: Client, name: string, word: string) => {
      const config = { Env: [`WORD=${word}`] };
      writeLayout(join(dir, word), { name, layers: [busyboxLayer()], config });
      return client.images.import({ path: join(dir, word) });
    };
    const { id } = await imported(first, "shared:1", "one");
    await refused("FORBIDDEN", imported(second, "shared:1", "two"));
    assert.deepEqual(
      readdirSync(join(daemon.home, "images/roots")),
      [id.replace("sha256:", "")],
      "nothing is left of it",
    );
    await refused("FORBIDDEN", second.images.remove("shared:1"));
    await refused("FORBIDDEN", second.images.remove(id));
    assert.deepEqual(
      (await second.images.list()).map((image) => [image.name, image.id]),
      [["shared:1", id]],
    );
    await imported(second, "own:1", "three");
    await second.images.remove("own:1");
    await imported(first, "shared:1", "four");
    await imported(owner, "shared:1", "five");
    await refused("FORBIDDEN", first.images.remove("shared:1"));
    await owner.images.remove("shared:1");
  });

  it("work in each other's with the scope `all`, and in their own always", async () => {
    const all = await as("all", ["read", "write", "all"]);
    assert.equal((await (await all.sandboxes.get(box.id)).run(["echo", "yes"])).stdout.text, "yes\n");
    const own = await second.create();
    assert.equal((await own.run(["echo", "own"])).stdout.text, "own\n");
    await own.delete();
  });
});

async function* pieces(archive: Buffer): AsyncGenerator<Uint8Array> {
  yield archive;
}
