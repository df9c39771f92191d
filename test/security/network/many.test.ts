// Many connections at once: each carries what is its own. `test/drivers/network.test.ts` holds a thousand open in every tier.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { after, before, it } from "node:test";
import { outside } from "../../support/network/world.ts";
import { eachAccount } from "./lab.ts";

eachAccount("many connections", (lab) => {
  let server: Server;
  let port = 0;
  before(async () => {
    server = createServer((socket) => {
      socket.on("error", () => {});
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
