// What listens in a sandbox, reached from outside: by the SDK, by the command line, across a restart.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { after, before, describe, it } from "node:test";
import { type Box, type Client, connect } from "@caisson/client";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { Launcher } from "../support/launcher.ts";

const page = "hello from inside";
const server = `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"${page} " + self.path.encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`;

async function serve(box: Box, port: number): Promise<void> {
  await box.exec(["python3", "-c", server, String(port)]);
  assert.equal((await box.ports.wait(port)).port, port);
}

/** What is said on a connection to a port of this machine. */
async function ask(port: number, path = "/"): Promise<string> {
  const socket = connectTcp(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.0\r\n\r\n`);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe("ports of a sandbox", { timeout: 240_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  before(async () => {
    daemon = await startDaemon();
    client = await connect({ socket: daemon.socket });
  });
  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  it("are listed and waited for", async () => {
    await using box = await client.create();
    assert.deepEqual(await box.ports.list(), []);
    await assert.rejects(box.ports.wait(8080, { timeout: 30 }), { code: "DEADLINE_EXCEEDED" });
    const waiting = box.ports.wait(8080);
    await serve(box, 8080);
    assert.equal((await waiting).address, "127.0.0.1");
    const [port] = await box.ports.list();
    assert.deepEqual([port!.port, port!.command], [8080, "python3"]);
    await assert.rejects(box.ports.wait(0), { code: "INVALID_INPUT" });
  });

  it("are forwarded for as long as the forward is open, and closed with the sandbox", async () => {
    const box = await client.create();
    const forward = await box.ports.forward(8080);
    // Nobody listens yet: whoever comes is turned away.
    await assert.rejects(ask(forward.hostPort), { code: "ECONNRESET" });
    await serve(box, 8080);
    assert.ok((await ask(forward.hostPort, "/a")).endsWith(`${page} /a`));
    await assert.rejects(box.ports.forward(8080, { hostPort: forward.hostPort }), { code: "PORT_IN_USE" });
    assert.deepEqual(
      (await box.ports.forwards()).map(({ id, hostPort }) => [id, hostPort]),
      [[forward.info.id, forward.hostPort]],
    );
    await forward.close();
    await assert.rejects(ask(forward.hostPort), { code: "ECONNREFUSED" });
    assert.deepEqual(await box.ports.forwards(), []);

    const second = await box.ports.forward(8080);
    await box.delete();
    await second.closed;
    await assert.rejects(ask(second.hostPort), { code: "ECONNREFUSED" });
    await assert.rejects(box.ports.forward(8080), { code: "SANDBOX_ENDED" });
  });

  it("are previewed behind a token that appears in no list and no event", async () => {
    await using box = await client.create();
    await serve(box, 8080);
    const preview = await box.ports.forward(8080, { preview: true });
    const { origin, searchParams, port } = new URL(preview.url!);
    const token = searchParams.get("token")!;
    assert.ok(token.length >= 32);
    assert.match(origin, /^http:\/\/fw-[0-9a-f]+\.localhost:\d+$/);
    const get = (headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${port}/x`, { headers }).then(async (answer) => [
        answer.status,
        await answer.text(),
      ]);
    assert.deepEqual(await get({ "x-caisson-token": token }), [200, `${page} /x`]);
    assert.equal((await get({}))[0], 403);
    assert.ok(!JSON.stringify(await box.ports.forwards()).includes(token));
    const events: string[] = [];
    for await (const event of client.events.subscribe({ follow: false })) events.push(JSON.stringify(event));
    assert.ok(events.some((event) => event.includes("port.forwarded")));
    assert.ok(!events.some((event) => event.includes(token)));
    assert.ok(!daemon.log().includes(token));
    await preview.close();
  });

  it("carry one connection as a stream of the API", async () => {
    await using box = await client.create();
    await serve(box, 8080);
    async function* input() {
      yield Buffer.from("GET /one HTTP/1.0\r\n");
      yield Buffer.from("\r\n");
    }
    const parts: Uint8Array[] = [];
    for await (const part of box.ports.connect(8080, input())) parts.push(part);
    assert.ok(Buffer.concat(parts).toString().endsWith(`${page} /one`));
    const nobody = box.ports.connect(9, input());
    await assert.rejects(nobody.next(), { code: "PORT_CLOSED" });
  });

  it("stay forwarded at the same place across the daemon's death, if detached", async () => {
    const box = await client.create();
    await serve(box, 8080);
    const kept = await box.ports.forward(8080, { detach: true });
    const preview = await box.ports.forward(8080, { detach: true, preview: true });
    const passing = await box.ports.forward(8080);
    const token = new URL(preview.url!).searchParams.get("token")!;
    await daemon.crash();
    await assert.rejects(ask(kept.hostPort), { code: "ECONNREFUSED" });
    await daemon.restart();
    assert.ok((await ask(kept.hostPort)).endsWith(`${page} /`));
    const answer = await fetch(`http://127.0.0.1:${preview.hostPort}/`, {
      headers: { "x-caisson-token": token },
    });
    assert.equal(answer.status, 200);
    await assert.rejects(ask(passing.hostPort), { code: "ECONNREFUSED" });
    const again = client.sandboxes.at(box.id);
    assert.equal((await again.ports.forwards()).length, 2);
    await again.ports.close(kept.info.id);
    await assert.rejects(again.ports.close(kept.info.id), { code: "FORWARD_NOT_FOUND" });
    await again.delete();
    await assert.rejects(ask(preview.hostPort), { code: "ECONNREFUSED" });
  });

  it("are reached by the command line", async () => {
    await using box = await client.create();
    await serve(box, 8080);
    const caisson = new Launcher(daemon);
    assert.equal((await caisson.run(["port", "wait", box.id, "8080"])).code, 0);
    const listed = await caisson.json(["port", "ls"], [box.id]);
    assert.equal(listed.ports[0].port, 8080);
    const running = caisson.start(["port", "forward", box.id, ":8080"]);
    const [line] = await once(running.stdout!, "data");
    const port = Number(/^127\.0\.0\.1:(\d+)\n$/.exec(String(line))![1]);
    assert.ok((await ask(port)).endsWith(`${page} /`));
    running.kill("SIGINT");
    const [code] = await once(running, "exit");
    assert.equal(code, 130);
    await eventually(
      () => box.ports.forwards(),
      (forwards) => forwards.length === 0,
    );
    const killed = caisson.start(["port", "forward", box.id, ":8080"]);
    await once(killed.stdout!, "data");
    killed.kill("SIGKILL");
    await eventually(
      () => box.ports.forwards(),
      (forwards) => forwards.length === 0,
    );
    const detached = await caisson.json(["port", "forward"], [box.id, ":8080", "-d", "--preview"]);
    assert.match(detached.url, /\/\.caisson\/open\?token=/);
    assert.equal((await caisson.run(["port", "close", box.id, detached.id])).code, 0);
    assert.equal((await caisson.run(["port", "forward", box.id, "0"])).code, 2);
  });
});
