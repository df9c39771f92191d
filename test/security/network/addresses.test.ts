// Addresses that are given literally, in whatever disguise.
import assert from "node:assert/strict";
import { it } from "node:test";
import { loopback } from "../../support/network/inward.ts";
import { eachAccount, proxy } from "./lab.ts";

eachAccount("addresses", (lab) => {
  it("the host's loopback is out of reach in every notation", async () => {
    const port = lab.world.canary.port;
    const lines = loopback.flatMap((host) => [
      `status("CONNECT ${host}:${port} HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\n\\r\\n")`,
      `status("GET http://${host}:${port}/ HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\n\\r\\n")`,
    ]);
    const answers = (await lab.python(lines.join("\n"))).trim().split("\n");
    assert.equal(answers.length, loopback.length * 2);
    for (const [index, answer] of answers.entries())
      assert.match(answer, /^HTTP\/1.1 40[03] /, loopback[index >> 1]);
    assert.equal(lab.world.canary.connections, 0);
  });

  it("SOCKS5 addresses and names of that kind are refused by its own code", async () => {
    const port = lab.world.canary.port;
    const printed = await lab.python(`
socks(1, bytes([127,0,0,1]), ${port})
socks(4, bytes(15) + b"\\x01", ${port})
socks(4, bytes(10) + b"\\xff\\xff" + bytes([127,0,0,1]), ${port})
socks(4, bytes.fromhex("0064ff9b0000000000000000") + bytes([127,0,0,1]), ${port})
socks(3, name(b"2130706433"), ${port})
socks(3, name(b"localhost"), ${port})
socks(3, name(b"allowed.test\\x00.denied.test"), ${port})
socks(3, name(b"allowed.test\\r\\nx"), ${port})
socks(3, name(b"fe80::1%lo"), ${port})
`);
    assert.equal(printed.trim(), Array(9).fill("socks 2").join("\n"));
    assert.equal(lab.world.canary.connections, 0);
  });

  it("metadata, private and link-local addresses are refused by name of their range, also under on", async () => {
    const box = await lab.make({ mode: "on" });
    const addresses = [
      "169.254.169.254",
      "[fd00:ec2::254]",
      "168.63.129.16",
      "100.100.100.200",
      "10.0.0.1",
      "172.16.0.1",
      "192.168.1.1",
      "100.64.0.1",
      "169.254.1.1",
      "224.0.0.1",
      "[fe80::1]",
      "[fd12::1]",
      "[ff02::1]",
      "198.18.0.1",
      "255.255.255.255",
    ];
    const script = addresses
      .map((host) => `status("CONNECT ${host}:80 HTTP/1.1\\r\\nHost: ${host}:80\\r\\n\\r\\n")`)
      .join("\n");
    const answers = (await lab.python(script, box)).trim().split("\n");
    for (const [index, answer] of answers.entries())
      assert.match(answer, /^HTTP\/1.1 403 caisson: .* address/, addresses[index]);
    assert.equal(answers.length, addresses.length);
    await box.delete();
  });

  it("the same addresses are refused to programs that know of no proxy", async () => {
    const box = await lab.make({ mode: "on" });
    const printed = await lab.python(
      `
for host in ("169.254.169.254", "10.0.0.1", "192.168.1.1", "100.100.100.200", "168.63.129.16"):
    try:
        s = socket.create_connection((host, 80), timeout=5); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        print("got", s.recv(100))
    except OSError as error: print("refused")
`,
      box,
    );
    for (const line of printed.trim().split("\n")) assert.match(line, /^refused$|^got b''$/);
    await box.delete();
  });

  it("the daemon's own port is refused even where loopback is named", async () => {
    const status = await lab.client.system.health();
    assert.ok(status.ready);
    const listening = /"address":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(lab.daemon.log())?.[1];
    assert.ok(listening, lab.daemon.log());
    const box = await lab.make({ allow: ["127.0.0.1"] });
    const answer = await lab.python(
      `status("GET http://127.0.0.1:${listening}/healthz HTTP/1.1\\r\\nHost: 127.0.0.1:${listening}\\r\\n\\r\\n")`,
      box,
    );
    assert.match(answer, /403 caisson: .*this daemon itself/);
    await box.delete();
  });

  it("UDP and QUIC go nowhere", async () => {
    const port = lab.world.canary.port;
    await lab.python(`
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.1.1"), (socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "::1")):
    try:
        u = socket.socket(family, socket.SOCK_DGRAM); u.settimeout(1)
        for p in (${port}, 443, 53): u.sendto(b"\\xc0\\x00\\x00\\x00\\x01quic", (host, p))
    except OSError: pass
`);
    assert.equal(lab.world.canary.datagrams, 0);
    assert.match(await lab.sh(`curl -sS -m 5 --noproxy '*' http://127.0.0.1:${port}/`), /exit 7/);
    assert.equal(lab.world.canary.connections, 0);
  });

  it("sockets of the host, named and abstract, are out of reach", async () => {
    const { createServer } = await import("node:net");
    const trap = createServer();
    let reached = 0;
    trap.on("connection", (socket) => {
      reached++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => trap.listen("\0caisson-test-abstract", resolve));
    const printed = await lab.python(`
for path in ("\\0caisson-test-abstract", "/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/user/0/bus", "/tmp/ssh-agent.sock", ${JSON.stringify(lab.daemon.socket)}):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); print("reached", repr(path))
    except OSError: pass
`);
    trap.close();
    assert.equal(printed, "");
    assert.equal(reached, 0);
    assert.doesNotMatch(await lab.sh("env"), /SSH_AUTH_SOCK|DBUS_SESSION/);
    assert.match(proxy, /14128/);
  });
});
