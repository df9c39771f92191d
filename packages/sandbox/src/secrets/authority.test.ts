import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { connect, TLSSocket } from "node:tls";
import { Authority, derOf } from "./authority.ts";
import { trustDirectory } from "./trust.ts";
import { makeTruststore } from "./truststore.ts";

async function presented(authority: Authority, name: string, ca: string): Promise<X509Certificate> {
  const [inside, outside] = duplexPair();
  const server = new TLSSocket(outside, { isServer: true, secureContext: authority.contextFor(name) });
  server.on("error", () => {});
  const client = connect({
    socket: inside,
    ca,
    ...(name.includes(":") || /^[\d.]+$/.test(name) ? { host: name } : { servername: name }),
  });
  try {
    await once(client, "secureConnect");
    return client.getPeerX509Certificate()!;
  } finally {
    client.destroy();
    server.destroy();
  }
}

test("who trusts the authority trusts every name and address that it vouches for, and who does not trusts none", async () => {
  const record = Authority.make("one sandbox");
  const authority = new Authority(record);
  for (const name of ["api.example.test", "127.0.0.1", "xn--bcher-kva.test", `${"long.".repeat(20)}test`]) {
    const leaf = await presented(authority, name, record.certificate);
    assert.ok(leaf.checkHost(name) ?? leaf.checkIP(name), name);
    assert.ok(!leaf.ca);
  }
  const other = Authority.make("another sandbox");
  await assert.rejects(presented(authority, "api.example.test", other.certificate));
});

test("its own certificate is an authority's, for two years, and names no key of another", () => {
  const certificate = new X509Certificate(Authority.make("one sandbox").certificate);
  assert.ok(certificate.ca);
  assert.ok(certificate.verify(certificate.publicKey));
  assert.match(certificate.subject, /one sandbox/);
  assert.ok(Date.parse(certificate.validTo) > Date.now() + 700 * 86_400_000);
});

test("an authority that was kept makes certificates that the first one's trust holds for", async () => {
  const record = Authority.make("one sandbox");
  await presented(new Authority(JSON.parse(JSON.stringify(record))), "a.test", record.certificate);
});

test("a truststore begins as Java's do, and holds the certificates", () => {
  const der = derOf(Authority.make("one sandbox").certificate);
  const store = makeTruststore([der, der]);
  assert.equal(store.readUInt32BE(0), 0xfeedfeed);
  assert.equal(store.readUInt32BE(8), 2);
  assert.equal(store.indexOf(der) > 0, true);
});

test("certificates lie where a profile lets somebody write, and in no project", () => {
  assert.equal(trustDirectory([]), "/home/agent/.caisson/trust");
  assert.equal(trustDirectory(["/srv/project", "/tmp/x"]), "/tmp/x/.caisson/trust");
  for (const paths of [["/srv/project"], ["/tmpfs"], ["/home/agents"]])
    assert.throws(() => trustDirectory(paths), { code: "NOT_ENFORCEABLE" });
});
