// Many connections at once: each carries what is its own, and the daemon answers meanwhile.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { after, before, it } from "node:test";
import { eventually } from "../../support/eventually.ts";
import { outside } from "../../support/network/world.ts";
import { eachAccount, usual } from "./lab.ts";

/** As many as a sandbox may have, but for those that its own checks need. */
const many = 1000;

eachAccount("many connections", (lab) => {
  let server: Server;
  let port = 0;
  let open = 0;
  before(async () => {
    server = createServer((socket) => {
      open += 1;
      socket.on("error", () => {});
      socket.on("close", () => {
        open -= 1;
      });
      // Whoever names a digit gets a lot of it; whoever sends nothing stays.
      socket.once("data", (data) => {
        const piece = Buffer.alloc(256 * 1024, data.subarray(0, 1));
        let left = 16;
        const pump = () => {
          while (left-- > 0) if (!socket.write(piece)) return void socket.once("drain", pump);
          socket.end();
        };
        pump();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, outside, resolve));
    port = (server.address() as { port: number }).port;
  });
  after(() => server.close());

  it("a thousand are open, and the daemon answers and starts sandboxes as before", async () => {
    const box = await lab.make({ allow: usual, limits: { connectionsPerSecond: 5000 } });
    const script = `import socket, time
held = [socket.create_connection(("allowed.test", ${port}), timeout=60) for _ in range(${many})]
print(len(held), flush=True)
time.sleep(600)`;
    const run = await box.exec(["/usr/bin/python3", "-c", script]);
    await eventually(
      async () => (await box.network.get()).connections,
      (count) => count === many,
    );
    assert.equal(open, many);
    for (let round = 0; round < 20; round++) await lab.client.system.health();
    const other = await lab.make({ allow: usual });
    assert.match(await lab.sh(`curl -sS http://allowed.test:${lab.world.httpPort}/`, other), /^reached/);
    await other.delete();
    await box.delete();
    await run.result().catch(() => {});
    await eventually(
      () => open,
      (count) => count === 0,
    );
  });

  it("what passes on each is its own, however slowly some are read", async () => {
    const script = `import socket, threading, time
def fetch(digit, slow):
    s = socket.create_connection(("allowed.test", ${port}), timeout=60)
    s.sendall(digit)
    count = 0
    while True:
        got = s.recv(65536)
        if not got: break
        count += len(got)
        if got.strip(digit): print("foreign", digit, got.strip(digit)[:20])
        if slow: time.sleep(0.002)
    print(digit.decode(), count)
threads = [threading.Thread(target=fetch, args=(bytes([48 + i]), i % 3 == 0)) for i in range(10)]
[t.start() for t in threads]; [t.join() for t in threads]`;
    const printed = await lab.python(script);
    const lines = printed.trim().split("\n").sort();
    assert.deepEqual(
      lines,
      Array.from({ length: 10 }, (_, i) => `${String.fromCharCode(48 + i)} ${16 * 256 * 1024}`),
    );
  });
});
