import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { accounts, eventually } from "../keeper/testing.ts";
import type { GuestConnection } from "./guest.ts";
import { SealedSandbox } from "./testing/sealed-sandbox.ts";

const never = new AbortController().signal;

/** Answers every request with where it was going. */
function answer({ kind, name, port, stream }: GuestConnection): void {
  stream.once("data", (request: Buffer) => {
    const said = `${kind} ${name} ${port} ${request.toString().split(" ", 2).join(" ")}\n`;
    stream.end(
      `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(said)}\r\nConnection: close\r\n\r\n${said}`,
    );
  });
}

async function python(box: SealedSandbox, ...lines: string[]): Promise<string> {
  const { out, err } = await box.run("/usr/bin/python3", "-c", ["import socket", ...lines].join("\n"));
  return out.trim() || (err.trim().split("\n").at(-1) ?? "");
}

for (const account of accounts()) {
  describe(`as ${account.name}`, () => {
    test("programs get out by the proxy, by names and by addresses, on any port", async () => {
      await using box = await SealedSandbox.start(account);
      box.guest.onConnection(answer);
      const get = async (...args: string[]) => (await box.run("/usr/bin/curl", "-sS", ...args)).out;
      assert.equal(await get("http://example.com/a"), "proxy  0 GET http://example.com/a\n");
      const direct = (url: string) => get("--noproxy", "*", url);
      assert.equal(await direct("http://example.com/a"), "transparent example.com 80 GET /a\n");
      assert.equal(await direct("http://Other.Example:8123/"), "transparent other.example 8123 GET /\n");
      assert.equal(await direct("http://93.184.216.34:81/"), "transparent 93.184.216.34 81 GET /\n");
      assert.equal(await direct("http://169.254.169.254/"), "transparent 169.254.169.254 80 GET /\n");
      const bound = await python(
        box,
        "s = socket.create_connection(('1.2.3.4', 99), source_address=('127.0.0.1', 0))",
        "s.sendall(b'GET /bound HTTP/1.0'); print(s.recv(1000).decode().split('\\n')[-2])",
      );
      assert.equal(bound, "transparent 1.2.3.4 99 GET /bound");
    });

    test("what is refused is reset at once, and what leads nowhere fails at once", async () => {
      await using box = await SealedSandbox.start(account);
      box.guest.onConnection(({ stream }) => stream.destroy());
      const connect = (address: string, family = "INET") =>
        python(
          box,
          `s = socket.socket(socket.AF_${family}); s.settimeout(20)`,
          `s.connect(${address}); print(s.recv(1))`,
        );
      assert.match(await connect("('example.com', 443)"), /ConnectionResetError/);
      // An address that no name was given, the guest's own listener, a port that is closed.
      assert.match(await connect("('198.19.1.1', 80)"), /ConnectionResetError/);
      assert.match(await connect("('127.0.0.1', 14129)"), /ConnectionResetError/);
      assert.match(await connect("('127.0.0.1', 9)"), /ConnectionRefusedError/);
      assert.match(await connect("('198.18.0.1', 9)"), /ConnectionRefusedError/);
      assert.match(await connect("('2001:db8::1', 80)", "INET6"), /unreachable|Cannot assign/);
      const datagram = await python(
        box,
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)",
        "s.connect(('8.8.8.8', 53)); s.send(b'x'); print(s.recv(1))",
      );
      assert.match(datagram, /ConnectionRefusedError/);
    });

    test("every name has an address, over UDP and TCP, and no other record", async () => {
      await using box = await SealedSandbox.start(account);
      const script = [
        "import struct",
        "def ask(name, kind):",
        "  q = struct.pack('>6H', 7, 256, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0' + struct.pack('>2H', kind, 1)",
        "  u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(20); u.sendto(q, ('127.0.0.1', 53))",
        "  a = u.recv(600)",
        "  t = socket.create_connection(('127.0.0.1', 53)); t.sendall(struct.pack('>H', len(q)) + q)",
        "  b = t.recv(600)[2:]",
        "  assert a == b, (a, b)",
        "  print(a[3] & 15, a[7], end=' ')",
        "for kind in (1, 28, 65): ask('a.example', kind)",
        "print(socket.gethostbyaddr(socket.gethostbyname('a.example'))[0])",
      ];
      assert.equal(await python(box, ...script), "0 1 0 0 0 0 a.example");
      const six = await box.run("/usr/bin/getent", "ahostsv6", "a.example");
      assert.equal(six.out, "");
    });

    test("a flood of names and of nonsense takes little memory, and names are answered as before", async () => {
      await using box = await SealedSandbox.start(account);
      box.guest.onConnection(answer);
      const script = [
        "import os, struct",
        "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(('127.0.0.1', 53)); u.settimeout(20)",
        "rest = b'.'.join([b'x' * 60] * 3)",
        "for i in range(30000):",
        "  labels = [b'%d' % i] + rest.split(b'.')",
        "  u.send(struct.pack('>6H', i % 65536, 256, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l for l in labels) + b'\\0\\0\\1\\0\\1')",
        "  u.recv(600)",
        "  if i % 100 == 0: u.send(os.urandom(i % 1400))",
        "u.close()",
        "pages = int(open('/proc/1/statm').read().split()[1])",
        "print(pages * 4096 < 32 << 20, socket.gethostbyname('still.example').startswith('198.1'))",
      ];
      assert.equal(await python(box, ...script), "True True");
      const { out } = await box.run("/usr/bin/curl", "-sS", "--noproxy", "*", "http://later.example/");
      assert.equal(out, "transparent later.example 80 GET /\n");
    });

    test("nobody inside can take the guest's listeners over", async () => {
      await using box = await SealedSandbox.start(account);
      const attempts = await python(
        box,
        "for port in (53, 14128, 14129):",
        "  for address in ('127.0.0.1', '0.0.0.0', '::', '::ffff:127.0.0.1'):",
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):",
        "      if kind == socket.SOCK_DGRAM and port != 53: continue",
        "      s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, kind)",
        "      for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, option, 1)",
        "      try: s.bind((address, port)); s.listen(); print('bound', address, port)",
        "      except OSError as e: pass",
        "print('done')",
      );
      assert.equal(attempts, "done");
    });

    test("more connections than there may be are refused, and those that are there go on", async () => {
      await using box = await SealedSandbox.start(account);
      let most = 0;
      let open = 0;
      box.guest.onConnection(({ stream }) => {
        open += 1;
        most = Math.max(most, open);
        stream.on("data", (bytes) => stream.write(bytes));
        stream.once("end", () => stream.end());
        stream.once("close", () => {
          open -= 1;
        });
      });
      const script = [
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)",
        // A refused one is told by the reset of its connection, and a reset that is quick enough by its connecting.
        "held, refused = [], 0",
        "for i in range(1100):",
        "  try: held.append(socket.create_connection(('example.com', 80)))",
        "  except ConnectionResetError: refused += 1",
        "held[0].settimeout(20); held[0].sendall(b'x'); assert held[0].recv(1) == b'x'",
        "for s in held[1:]:",
        "  try: s.settimeout(20); s.sendall(b'y'); assert s.recv(1) == b'y'",
        "  except (ConnectionResetError, BrokenPipeError): refused += 1",
        "print(refused)",
      ];
      assert.equal(await python(box, ...script), "76");
      assert.equal(most, 1024);
      await eventually("all are closed", () => open === 0);
      assert.ok((await box.guest.ping()) >= 0);
    });

    test("ports inside are listed and reached, on IPv4 and on IPv6 alone", async () => {
      await using box = await SealedSandbox.start(account);
      const server = (family: string, address: string, port: number) =>
        box.spawn(
          "/usr/bin/python3",
          "-uc",
          `import socket\ns = socket.socket(socket.${family}); s.bind(('${address}', ${port})); s.listen()\nprint('up')\nwhile True:\n  c = s.accept()[0]; c.sendall(c.recv(100)[::-1]); c.shutdown(1); c.recv(1); c.close()`,
        );
      const four = await server("AF_INET", "0.0.0.0", 8080);
      const six = await server("AF_INET6", "::1", 8081);
      await eventually("both listen", () => [four, six].every(({ sink }) => sink.bytes(1).length > 0));
      const ports = await box.guest.ports();
      assert.deepEqual(
        ports.map(({ port, address, command }) => [port, address, command]),
        [
          [8080, "0.0.0.0", "python3"],
          [8081, "::1", "python3"],
        ],
      );
      assert.ok(ports.every(({ pid }) => pid > 1));
      for (const port of [8080, 8081]) {
        const stream = await box.guest.connect(port, never);
        stream.end("abc");
        const parts: Buffer[] = [];
        for await (const part of stream) parts.push(part);
        assert.equal(Buffer.concat(parts).toString(), "cba");
      }
      for (const port of [9, 53, 14128, 14129]) {
        await assert.rejects(box.guest.connect(port, never), { code: "PORT_CLOSED" }, String(port));
      }
    });

    test("large transfers pass whole in both directions, whoever is slow", async () => {
      await using box = await SealedSandbox.start(account);
      const bytes = 8_000_000;
      box.guest.onConnection(async ({ stream }) => {
        let received = 0;
        for await (const piece of stream) received += piece.length;
        stream.write(`${received}\n`);
        for (let i = 0; i < bytes / 1000; i += 1) {
          if (!stream.write(Buffer.alloc(1000, i % 251))) await once(stream, "drain");
        }
        stream.end();
      });
      const script = [
        "import time",
        "s = socket.create_connection(('example.com', 80))",
        `s.sendall(b'x' * ${bytes}); s.shutdown(socket.SHUT_WR)`,
        "f = s.makefile('rb'); said = int(f.readline()); time.sleep(0.2)",
        `data = f.read(); print(said, len(data), all(data[i] == i // 1000 % 251 for i in range(0, ${bytes}, 997)))`,
      ];
      assert.equal(await python(box, ...script), `${bytes} ${bytes} True`);
    });
  });
}
