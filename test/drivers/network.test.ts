// The network door from inside: programs meet it wherever they look, nothing of it leads out by itself, and what is allowed is
// reached in each way.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, it } from "node:test";
import type { Box } from "@caisson/client";
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

await conform(({ box: make, client, driver, account }) => {
  it("reaches what is allowed by proxy, by SOCKS5 and without knowing of one, and nothing else", async () => {
    const { address, port, requests, names } = outside;
    await using box = await make({ network: { allow: ["allowed.test", address] } });
    const path = `/${driver}-${account.name}`;
    const ways = [
      `curl -sS http://allowed.test:${port}${path}-plain`,
      `curl -sSp http://allowed.test:${port}${path}-connect`,
      `curl -sS -x socks5h://127.0.0.1:14128 http://allowed.test:${port}${path}-socks`,
      `curl -sS --noproxy '*' http://allowed.test:${port}${path}-transparent`,
    ];
    for (const way of ways) {
      const { stdout, stderr } = await box.run(["sh", "-c", way]);
      assert.equal(stdout.text, "reached\n", `${way}: ${stderr.text}`);
    }
    assert.equal(requests.filter((line) => line.includes(`${path}-`)).length, ways.length);
    const refused = `curl -sS http://denied.test:${port}${path}; curl -sS --noproxy '*' http://denied.test${path}`;
    assert.doesNotMatch((await box.run(["sh", "-c", refused])).stdout.text, /reached/);
    assert.equal(requests.filter((line) => line.includes(`${path}-`)).length, ways.length);
    assert.ok(!names.questions.some((question) => question.includes("denied")));
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

  it("says by what means programs that know no proxy are caught", async () => {
    await using box = await make();
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
    await using box = await make();
    const names = "('a.example', 'b.example', 'A.example', 'registry.example')";
    const addresses = (await python(box, `print(*[socket.gethostbyname(n) for n in ${names}])`)).split(" ");
    assert.ok(
      addresses.every((address) => /^198\.1[89]\./.test(address)),
      String(addresses),
    );
    assert.equal(addresses[0], addresses[2]);
    assert.equal(new Set(addresses).size, 3);
    const families = "print({i[0] for i in socket.getaddrinfo('a.example', 80)} == {socket.AF_INET})";
    assert.equal(await python(box, families), "True");
  });

  it("resets what is refused, by name and by address, instead of letting it wait", async () => {
    await using box = await make();
    for (const target of ["('example.com', 80)", "('example.com', 443)"]) {
      assert.match(await python(box, connecting(target)), /reset|refused|403/i, target);
    }
    for (const target of ["('169.254.169.254', 80)", "('10.0.0.1', 80)", "('8.8.8.8', 443)"]) {
      assert.match(await python(box, connecting(target)), /reset|refused|unreachable|no route|403/i, target);
    }
  });

  it("lets neither UDP nor IPv6 nor the host's own loopback be reached", async () => {
    await using box = await make();
    const datagram = [
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)",
      "s.connect(('8.8.8.8', 53)); s.send(b'x'); print(s.recv(1))",
    ];
    assert.match(await python(box, ...datagram), /refused|unreachable|no route/i);
    assert.match(
      await python(box, connecting("('2001:db8::1', 80)")),
      /unreachable|no route|assign|not supported/i,
    );
    assert.match(await python(box, connecting("('127.0.0.1', 22)")), /refused|reset/i);
  });

  it("offers the proxy by its variables, and refuses there with a reason", async () => {
    await using box = await make();
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
    await using box = await make();
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
    await using box = await make();
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
}, outside.env);
