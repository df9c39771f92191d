// Requests that say one thing to us and another to somebody else.
import assert from "node:assert/strict";
import { it } from "node:test";
import { eachAccount } from "./lab.ts";

eachAccount("requests", (lab) => {
  it("a request that could be read in two ways is refused before anything leaves", async () => {
    const at = `allowed.test:${lab.world.httpPort}`;
    const lines = {
      "another Host": `GET http://${at}/ HTTP/1.1\r\nHost: denied.test\r\n\r\n`,
      "another port in Host": `GET http://${at}/ HTTP/1.1\r\nHost: allowed.test:1\r\n\r\n`,
      "two Hosts": `GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nHost: denied.test\r\n\r\n`,
      "CONNECT with another Host": `CONNECT ${at} HTTP/1.1\r\nHost: denied.test:1\r\n\r\n`,
      "user information": `GET http://allowed.test@denied.test:${lab.world.httpPort}/ HTTP/1.1\r\nHost: denied.test\r\n\r\n`,
      "user information before an allowed name": `GET http://a:b@${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`,
      "NUL in the target": `CONNECT allowed.test\0.denied.test:${lab.world.httpPort} HTTP/1.1\r\nHost: x\r\n\r\n`,
      "CRLF in the target": `CONNECT allowed.test\r\nX:${lab.world.httpPort} HTTP/1.1\r\n\r\n`,
      "percent in the target": `CONNECT allowed.test%2edenied.test:443 HTTP/1.1\r\nHost: x\r\n\r\n`,
      "both lengths": `POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://denied.test/ HTTP/1.1\r\n\r\n`,
      "two lengths": `POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      "a length that is none": `POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nContent-Length: +5\r\n\r\nhello`,
      "an odd coding": `POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
      "two codings": `POST http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n`,
      "a folded header": `GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\nX: a\r\n Host: denied.test\r\nTransfer-Encoding : chunked\r\n\r\n`,
      "a bare line feed": `GET http://${at}/ HTTP/1.1\r\nHost: ${at}\nHost: denied.test\r\n\r\n`,
      "no target": `GET / HTTP/1.1\r\nHost: ${at}\r\n\r\n`,
      "another scheme": `GET ftp://${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`,
    };
    const before = lab.world.requests.length;
    const script = Object.values(lines)
      .map((line) => `status(${JSON.stringify(line).replaceAll("\\u0000", "\\x00")})`)
      .join("\n");
    const answers = (await lab.python(script)).trimEnd().split("\n");
    for (const [index, what] of Object.keys(lines).entries())
      assert.match(answers[index] ?? "", /^HTTP\/1.1 40[03] |^$/, what);
    assert.equal(lab.world.requests.length, before);
  });

  it("requests in a tunnel and those of programs that know of no proxy are held to the same", async () => {
    const { httpPort } = lab.world;
    const before = lab.world.requests.length;
    const printed = await lab.python(`
s = socket.create_connection(("allowed.test", ${httpPort}), timeout=5)
s.sendall(b"GET /ok HTTP/1.1\\r\\nHost: allowed.test:${httpPort}\\r\\n\\r\\n")
got = b""
while b"reached" not in got: got += s.recv(65536)
print(got.split(b"\\r\\n")[0])
s.sendall(b"GET /hidden HTTP/1.1\\r\\nHost: denied.test:${httpPort}\\r\\n\\r\\n")
print(s.recv(65536).split(b"\\r\\n")[0][:12])
print(raw("CONNECT allowed.test:${httpPort} HTTP/1.1\\r\\nHost: allowed.test:${httpPort}\\r\\n\\r\\nGET /hidden HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n").split("\\r\\n\\r\\n")[1][:12])
`);
    const slow = await lab.python(`
import time
s = socket.create_connection(("allowed.test", ${httpPort}), timeout=5)
try:
    for piece in (b"G", b"ET /hidden HT", b"TP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n"): s.sendall(piece); time.sleep(0.7)
    print(s.recv(12) or "cut")
except OSError: print("cut")
`);
    assert.match(slow, /^(cut|b'HTTP\/1\.1 40)/, "what comes letter by letter");
    assert.equal(printed.trim(), "b'HTTP/1.1 200 OK'\nb'HTTP/1.1 403'\nHTTP/1.1 403");
    assert.deepEqual(lab.world.requests.slice(before), [`GET /ok allowed.test:${httpPort}`]);
  });

  it("the server name of TLS must be the judged name, on every port and however it is sent", async () => {
    const { tlsPort } = lab.world;
    const before = lab.world.requests.length;
    const printed = await lab.python(`
context = ssl.create_default_context(cafile="/tmp/ca.pem"); context.check_hostname = False
def tls(target, sni, alter=None):
    s = socket.create_connection((target, ${tlsPort}), timeout=5)
    try:
        t = context.wrap_socket(s, server_hostname=sni)
        t.sendall(("GET /%s HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n" % (sni or "none")).encode())
        print(t.recv(15))
    except (OSError, ssl.SSLError) as error: print("cut")
tls("allowed.test", "allowed.test")
tls("allowed.test", "denied.test")
tls("allowed.test", None)
tls("allowed.test", "a.below.test")
# the hello in pieces of a few bytes
inc, out = ssl.MemoryBIO(), ssl.MemoryBIO()
obj = context.wrap_bio(inc, out, server_hostname="denied.test")
try: obj.do_handshake()
except ssl.SSLWantReadError: pass
hello = out.read()
import time
s = socket.create_connection(("allowed.test", ${tlsPort}), timeout=5); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
try:
    for i in range(0, len(hello), 90): s.sendall(hello[i:i+90]); time.sleep(0.01)
    print("answered" if s.recv(10) else "cut")
except OSError: print("cut")
# the hello in several records
body = hello[5:]
records = b"".join(b"\\x16\\x03\\x01" + struct.pack(">H", len(body[i:i+50])) + body[i:i+50] for i in range(0, len(body), 50))
s = socket.create_connection(("allowed.test", ${tlsPort}), timeout=5)
try:
    s.sendall(records); print("answered" if s.recv(10) else "cut")
except OSError: print("cut")
`);
    assert.equal(printed.trim(), "b'HTTP/1.1 200 OK'\ncut\ncut\ncut\ncut\ncut");
    assert.deepEqual(lab.world.requests.slice(before), ["GET /allowed.test allowed.test"]);
    const rules = await lab.refusals("allowed.test", lab.box, 2);
    assert.ok(rules.includes("no server name") && rules.includes("server name"), String(rules));
  });
});
