// The network door from inside: programs meet it wherever they look, nothing of it leads out by itself, and what is allowed is
// reached in each way.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, it } from "node:test";
import type { Box } from "@caisson/client";
import { eventually, sleep } from "../support/eventually.ts";
import { attemptArgv, attemptInput, surprises } from "../support/network/attempts.ts";
import { outside as address } from "../support/network/world.ts";
import { conform } from "./conform.ts";
import { openOutside } from "./outside.ts";

/** What a line of Python prints, or its error. */
async function python(box: Box, ...lines: string[]): Promise<string> {
  const { stdout, stderr } = await box.run([
    "/usr/bin/python3",
    "-c",
    ["import socket", ...lines].join("\n"),
  ]);
  return stdout.text.trim() || (stderr.text.trim().split("\n").at(-1) ?? "");
}

const connecting = (address: string) =>
  `s = socket.create_connection(${address}, timeout=20); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(1))`;

function mechanisms(box: Box): Map<string, { state: string; by: string; detail: string }> {
  return new Map(box.info.enforced!.mechanisms.map((mechanism) => [mechanism.name, mechanism as never]));
}

const outside = await openOutside();
after(() => outside.close());

const { world } = outside;
const usual = ["allowed.test", "*.below.test", address];

await conform(({ box: make, client, driver, account, daemon }) => {
  /** For tests that leave it as it was. */
  let box: Box;
  before(async () => {
    box = await make({ network: { allow: usual } });
  });
  after(() => box?.delete());

  it("reaches what is allowed by proxy, by SOCKS5 and without knowing of one, and nothing else", async () => {
    const port = world.httpPort;
    const path = `/${driver}-${account.name}`;
    const ways = [
      `curl -sS http://allowed.test:${port}${path}-plain`,
      `curl -sSp http://allowed.test:${port}${path}-connect`,
      `curl -sS -x socks5h://127.0.0.1:14128 http://allowed.test:${port}${path}-socks`,
      `curl -sS --noproxy '*' http://allowed.test:${port}${path}-transparent`,
    ];
    const refused = `curl -sS http://denied.test:${port}${path}-no; curl -sS --noproxy '*' http://denied.test:${port}${path}-no`;
    const { stdout, stderr } = await box.run(["sh", "-c", [...ways, refused].join("\n")]);
    assert.equal(stdout.text.replaceAll(/caisson: .*\n/g, ""), "reached\n".repeat(ways.length), stderr.text);
    const came = world.requests.filter((line) => line.includes(`${path}-`));
    assert.deepEqual(
      came,
      ["plain", "connect", "socks", "transparent"].map((way) => `GET ${path}-${way} allowed.test:${port}`),
    );
    assert.ok(!world.names.questions.some((question) => question.includes("denied")));
  });

  it("withstands what hostile programs try at it, and nothing leaves", async () => {
    const seen = world.requests.length;
    const sockets = [
      "\0caisson-test-abstract",
      "/var/run/docker.sock",
      "/run/dbus/system_bus_socket",
      daemon.socket,
    ];
    const attempt = async (mode: "allow" | "on") => {
      const stdin = attemptInput(world, mode, sockets);
      const { stdout, stderr } = await box.run(attemptArgv, { stdin, timeout: 180_000 });
      assert.equal(stderr.text, "");
      assert.deepEqual(surprises(stdout.text), []);
      return stdout.text.trim().split("\n").length;
    };
    assert.ok((await attempt("allow")) > 100);
    await box.network.update({ mode: "on" });
    assert.ok((await attempt("on")) > 15);
    await box.network.update({ mode: "allow" });
    assert.deepEqual([world.canary.connections, world.canary.datagrams], [0, 0]);
    const hidden = world.requests
      .slice(seen)
      .filter((line) => /denied|\/direct|\/tunnel/.test(line) && !line.includes("a.below.test"));
    assert.deepEqual(hidden, []);
    const leaked = world.names.questions.filter(
      (question) => !/ (allowed|secret|(a|trap\d+)\.below)\.test$/.test(question),
    );
    assert.deepEqual(leaked, []);
  });

  it("puts secrets in outside, under the authority of the sandbox alone", async () => {
    const value = `canary-${driver}-${account.name}`;
    const target = `secret.test:${outside.secretPort}`;
    // Other drivers are tried at the same time.
    const name = `TOKEN_FOR_${driver.toUpperCase()}`;
    await client.secrets.set(name, { hosts: [target], value });
    const network = { allow: [target, `127.0.0.1:${outside.secretPort}`] };
    await using box = await make({ network, secrets: [name] });
    const script = `curl -sS -o /dev/null -w '%{http_code}' https://${target}/ -H "Authorization: Bearer $${name}"; env`;
    const { stdout, stderr } = await box.run(["sh", "-c", script]);
    assert.match(stdout.text, /^200/, stderr.text);
    assert.ok(outside.heard.some(({ headers }) => headers.authorization === `Bearer ${value}`));
    assert.ok(!stdout.text.includes(value));
  });

  it("says by what means programs that know no proxy are caught", () => {
    const report = mechanisms(box);
    assert.equal(report.get("network.door")?.state, "enforced");
    assert.equal(report.get("network.transparent")?.state, "enforced");
    assert.equal(
      report.get("network.transparent")!.by,
      `${driver === "runsc" ? "iptables" : "nftables"} redirect`,
    );
    assert.equal(report.get("network.transparent")!.detail, "every TCP port; names and IPv4 addresses");
  });

  it("gives every name an address of its own, the same each time, and IPv4 only", async () => {
    const names = "('a.example', 'b.example', 'A.example', 'registry.example')";
    const [addresses, families] = (
      await python(
        box,
        `print(*[socket.gethostbyname(n) for n in ${names}])`,
        "print({i[0] for i in socket.getaddrinfo('a.example', 80)} == {socket.AF_INET})",
      )
    ).split("\n");
    const found = addresses!.split(" ");
    assert.ok(
      found.every((address) => /^198\.1[89]\./.test(address)),
      addresses,
    );
    assert.equal(found[0], found[2]);
    assert.equal(new Set(found).size, 3);
    assert.equal(families, "True");
  });

  it("resets what is refused, by name and by address, and has no way for UDP, IPv6 and the host's own loopback", async () => {
    const targets = [
      "('example.com', 80)",
      "('example.com', 443)",
      "('169.254.169.254', 80)",
      "('10.0.0.1', 80)",
      "('8.8.8.8', 443)",
      "('127.0.0.1', 22)",
      "('2001:db8::1', 80)",
    ];
    const datagram = [
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)",
      "s.connect(('8.8.8.8', 53)); s.send(b'x'); print(s.recv(1))",
    ];
    const tries = [...targets.map((target) => [connecting(target)]), datagram].flatMap((lines) => [
      "try:",
      ...lines.map((line) => `  ${line}`),
      "except OSError as error: print(error)",
    ]);
    const outcomes = (await python(box, ...tries)).split("\n");
    assert.equal(outcomes.length, targets.length + 1);
    for (const [index, outcome] of outcomes.entries())
      assert.match(
        outcome,
        /reset|refused|403|unreachable|no route|assign|not supported/i,
        targets[index] ?? "UDP",
      );
  });

  it("offers the proxy by its variables, and refuses there with a reason", async () => {
    const { stdout } = await box.run([
      "sh",
      "-c",
      "echo $HTTP_PROXY $https_proxy; curl -s -o /dev/null -w '%{http_code}' http://example.com/",
    ]);
    const [variables, code] = stdout.text.split("\n");
    assert.equal(variables, "http://127.0.0.1:14128 http://127.0.0.1:14128");
    assert.equal(code, "403");
  });

  it("keeps the guest's listeners for the guest", async () => {
    const attempts = [
      "for port in (53, 14128):",
      "  for address in ('127.0.0.1', '0.0.0.0'):",
      "    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)",
      "    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)",
      "    try: s.bind((address, port)); s.listen(); print('bound', address, port)",
      "    except OSError: pass",
      "print('done')",
    ];
    assert.equal(await python(box, ...attempts), "done");
  });

  it("leaves programs' own connections alone, and leads to their ports from outside", async () => {
    await box.exec([
      "/usr/bin/python3",
      "-c",
      "import socket\ns = socket.create_server(('127.0.0.1', 8080))\nwhile True:\n  c = s.accept()[0]; c.sendall(c.recv(9)[::-1]); c.close()",
    ]);
    assert.equal((await box.ports.wait(8080)).address, "127.0.0.1");
    const inside = "s = socket.create_connection(('localhost', 8080)); s.sendall(b'abc'); print(s.recv(9))";
    assert.equal(await python(box, inside), "b'cba'");
    await using forward = await box.ports.forward(8080);
    const socket = connect(forward.hostPort, "127.0.0.1");
    socket.write("xyz");
    const parts: Buffer[] = [];
    for await (const part of socket) parts.push(part);
    assert.equal(Buffer.concat(parts).toString(), "zyx");
  });

  it("holds a thousand connections open, and the daemon answers meanwhile", async () => {
    await using crowded = await make({ network: { allow: usual, limits: { connectionsPerSecond: 5000 } } });
    const script = `import socket, time
held = [socket.create_connection(("allowed.test", ${world.tlsPort}), timeout=60) for _ in range(1000)]
time.sleep(600)`;
    await using _run = await crowded.exec(["/usr/bin/python3", "-c", script]);
    await eventually(
      async () => (await crowded.network.get()).connections,
      (count) => count === 1000,
      { within: 120_000 },
    );
    for (let round = 0; round < 10; round++) await client.system.health();
    assert.match(await python(box, connecting(`("allowed.test", ${world.httpPort})`)), /b'H'/);
  });

  it("lets nothing through while the daemon is gone, and the next one holds the same rules", async () => {
    const path = `/gone-${driver}-${account.name}`;
    const came = () => world.requests.filter((line) => line.includes(path)).length;
    const url = `http://allowed.test:${world.httpPort}${path}`;
    const script = `i=0; while [ $i -lt 400 ]; do curl -s -m 2 ${url}; i=$((i+1)); sleep 0.05; done`;
    await box.exec(["sh", "-c", script]);
    await eventually(came, (count) => count > 0);
    await daemon.crash();
    const left = came();
    await sleep(700);
    assert.ok(came() <= left + 1, "something went out without a daemon");
    await daemon.restart();
    await eventually(came, (count) => count > left + 1);
    assert.match(await python(box, connecting(`("denied.test", ${world.httpPort})`)), /reset|refused|403/i);
    assert.deepEqual((await box.network.get()).network.allow, usual);
  });
}, outside.env);
