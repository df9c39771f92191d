// Readers over TCP that take nothing while a sandbox writes without end: the daemon's memory stays bounded, and others are served.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect as dialHttp2 } from "node:http2";
import { connect as dial, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Box, type Client, connect, type Run } from "@caisson/client";
import { AttachProcessRequestSchema } from "@caisson/contract";
import { startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { eventually, sleep } from "../../support/eventually.ts";

const readers = 16;
const outputMib = 48;
/** Of all of them together, garbage that was not collected yet included; without bounds it would be readers × output. */
const allowedMib = 256;

describe("readers that do not read", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  let box: Box;
  let url: URL;
  let key: string;
  let run: Run;
  const sockets: Socket[] = [];
  const sessions: ClientHttp2Session[] = [];
  before(async () => {
    daemon = await startDaemon({ env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
    client = await connect({ socket: daemon.socket });
    key = (await client.keys.create("reader", { scopes: ["read", "all"] })).secret;
    const found = await eventually(
      () => /"address":"(http:[^"]+)"/.exec(daemon.log()),
      (match) => match !== null,
    );
    url = new URL(found![1]!);
    box = await client.create();
    const script = `head -c ${outputMib * 1024 * 1024} /dev/zero | tr '\\0' x; echo; echo end`;
    run = await box.exec(["sh", "-c", script]);
    await run.exit;
  });
  after(async () => {
    for (const connection of [...sockets, ...sessions]) connection.destroy();
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  const memoryMib = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.child.pid}/status`, "utf8"))![1]) / 1024;

  /** Asks, waits for the answer's beginning, and takes nothing of the rest. */
  async function ask(head: string, body: Uint8Array = new Uint8Array()): Promise<void> {
    const socket = dial(Number(url.port), "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => {});
    const lines = [
      head,
      `Host: ${url.host}`,
      `Authorization: Bearer ${key}`,
      `Content-Length: ${body.length}`,
    ];
    socket.write(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]));
    const [first] = await new Promise<Buffer[]>((resolve) => socket.once("data", (data) => resolve([data])));
    assert.match(first!.toString("latin1"), /^HTTP\/1\.1 200 /);
    socket.pause();
  }

  async function stayBounded(before: number): Promise<void> {
    let most = 0;
    for (let look = 0; look < 20; look++) {
      most = Math.max(most, memoryMib() - before);
      await sleep(50);
    }
    assert.ok(most < allowedMib, `${most.toFixed()} MiB for ${readers} readers of ${outputMib} MiB`);
    assert.equal((await client.run(["echo", "served"])).stdout.text, "served\n");
  }

  it("of gRPC, many on one connection and one on each of many, are held back by HTTP/2's own windows", async () => {
    const before = memoryMib();
    const request = create(AttachProcessRequestSchema, { sandboxId: box.id, processId: run.id });
    const message = toBinary(AttachProcessRequestSchema, request);
    const envelope = Buffer.alloc(5);
    envelope.writeUInt32BE(message.length, 1);
    for (let reader = 0; reader < readers; reader++) {
      // Half of them share the first connection, which also promises to take more than it does.
      if (reader === 0 || reader >= readers / 2) {
        const session = dialHttp2(url.origin, { settings: { initialWindowSize: 16 << 20 } });
        session.on("error", () => {});
        sessions.push(session);
      }
      const stream = sessions.at(-1)!.request({
        ":method": "POST",
        ":path": "/caisson.v1.ProcessService/AttachProcess",
        "content-type": "application/grpc",
        te: "trailers",
        authorization: `Bearer ${key}`,
      });
      stream.on("error", () => {});
      stream.end(Buffer.concat([envelope, message]));
      const [headers] = await new Promise<Record<string, unknown>[]>((resolve) =>
        stream.once("response", (...answer) => resolve(answer as never)),
      );
      assert.equal(headers![":status"], 200);
    }
    await stayBounded(before);
  });

  it("of events and of Connect's streams hold no more than a little each, and nobody else waits for them", async () => {
    const before = memoryMib();
    const path = `/v1/sandboxes/${box.id}/processes/${run.id}/events`;
    const message = Buffer.from(JSON.stringify({ sandboxId: box.id, processId: run.id }));
    const envelope = Buffer.alloc(5);
    envelope.writeUInt32BE(message.length, 1);
    for (let reader = 0; reader < readers; reader += 2) {
      await ask(`GET ${path} HTTP/1.1`);
      await ask(
        "POST /caisson.v1.ProcessService/AttachProcess HTTP/1.1\r\nContent-Type: application/connect+json\r\nConnect-Protocol-Version: 1",
        Buffer.concat([envelope, message]),
      );
    }
    await stayBounded(before);
    const whole = await fetch(new URL(path, url), { headers: { authorization: `Bearer ${key}` } });
    const text = await whole.text();
    assert.ok(
      text.length > outputMib * 1024 * 1024 && /"text":"[^"]*\nend|\\nend\\n/.test(text.slice(-1_000_000)),
    );
  });
});
