// Logging in with a token of an issuer: the whole way from a signature to a command's output.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createSign, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { root, self, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

const issuer = "https://issuer.example";
const ed = generateKeyPairSync("ed25519");
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Made by hand, so that what is accepted is the format and not a library's habit. */
function token(claims: object, alg: "EdDSA" | "RS256" | "ES256" = "EdDSA"): string {
  const text = `${encode({ alg, kid: alg })}.${encode({ iss: issuer, aud: "caisson", sub: "alice", exp: Date.now() / 1000 + 60, ...claims })}`;
  const bytes = Buffer.from(text);
  const signature = {
    EdDSA: () => sign(null, bytes, ed.privateKey),
    RS256: () => createSign("sha256").update(bytes).sign(rsa.privateKey),
    ES256: () => sign("sha256", bytes, { key: ec.privateKey, dsaEncoding: "ieee-p1363" }),
  }[alg]();
  return `${text}.${signature.toString("base64url")}`;
}

const published = (kid: string, key: KeyObject) => ({ ...key.export({ format: "jwk" }), kid });
const jwks = {
  keys: [
    published("EdDSA", ed.publicKey),
    published("RS256", rsa.publicKey),
    published("ES256", ec.publicKey),
  ],
};

async function startWith(env: Record<string, string>): Promise<{ daemon: TestDaemon; url: string }> {
  const daemon = await startDaemon({
    env: { CAISSON_LISTEN_TCP: "127.0.0.1:0", CAISSON_AUTH_JWT_ISSUER: issuer, ...env },
  });
  const found = await eventually(
    () => /"address":"(http:[^"]+)"/.exec(daemon.log()),
    (match) => match !== null,
  );
  return { daemon, url: found![1]! };
}

describe("a token", { timeout: 120_000 }, () => {
  let running: Awaited<ReturnType<typeof startWith>>;
  before(async () => {
    running = await startWith({ CAISSON_AUTH_JWT_JWKS: JSON.stringify(jwks) });
  });
  after(() => running.daemon[Symbol.asyncDispose]());

  it("of each algorithm runs a command, whose trail names its subject", async () => {
    for (const alg of ["EdDSA", "RS256", "ES256"] as const) {
      const key = token({ scope: "caisson:read caisson:write", sub: `by-${alg}` }, alg);
      await using client = await connect({ url: running.url, key });
      assert.equal((await client.run(["echo", alg])).stdout.text, `${alg}\n`);
      // The trail is on the disk a moment after the answer.
      await eventually(
        () => Array.fromAsync(client.events.subscribe({ follow: false })),
        (events) => events.some(({ actor }) => actor === `jwt:by-${alg}`),
      );
    }
  });

  it("is good for its scopes alone", async () => {
    await using reader = await connect({ url: running.url, key: token({ scope: "caisson:read" }) });
    for await (const _ of reader.sandboxes.list());
    await assert.rejects(reader.run(["true"]), { code: "FORBIDDEN" });
    await using nobody = await connect({ url: running.url, key: token({}) });
    await assert.rejects(nobody.run(["true"]), { code: "FORBIDDEN" });
  });

  it("that is expired, for others or forged is nobody's", async () => {
    const soon = token({ scope: "caisson:read" });
    const forged = soon.slice(0, -6) + (soon.endsWith("AAAAAA") ? "BBBBBB" : "AAAAAA");
    for (const key of [
      token({ exp: 1 }),
      token({ aud: "others" }),
      token({ iss: "https://evil.example" }),
      forged,
    ]) {
      await using client = await connect({ url: running.url, key });
      await assert.rejects(client.sandboxes.get("sb_0000000000000000"), { code: "UNAUTHENTICATED" });
    }
  });

  it("is checked by keys from an address, too", async () => {
    const server = createServer((_request, response) => response.end(JSON.stringify(jwks))).listen(
      0,
      "127.0.0.1",
    );
    await new Promise((resolve) => server.once("listening", resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const { daemon, url } = await startWith({ CAISSON_AUTH_JWT_JWKS_URL: address });
    await using _ = daemon;
    await using client = await connect({ url, key: token({ scope: "caisson:write" }) });
    assert.equal((await client.run(["true"])).code, 0);
    server.closeAllConnections();
    server.close();
  });
});

describe("half a configuration of tokens", () => {
  const home = temporaryDirectory(self());
  after(() => rmSync(home, { recursive: true }));
  const cases: [string, string, RegExp][] = [
    ["an issuer without keys", "auth:\n  jwt:\n    issuer: https://i.example\n", /needs one of/],
    ["keys without an issuer", "auth:\n  jwt:\n    jwks_file: /tmp/x\n", /without auth.jwt.issuer/],
    [
      "keys over plain http",
      "auth:\n  jwt:\n    issuer: https://i.example\n    jwks_url: http://i.example/k\n",
      /https:\/\//,
    ],
    [
      "keys that are none",
      "auth:\n  jwt:\n    issuer: https://i.example\n    jwks: { a: 1 }\n",
      /list `keys`/,
    ],
  ];
  for (const [what, text, words] of cases) {
    it(`with ${what} is refused at start`, () => {
      const config = join(home, "config.yaml");
      writeFileSync(config, text);
      const env = {
        PATH: process.env.PATH!,
        CAISSON_HOME: home,
        CAISSON_CONFIG: config,
        CAISSON_LISTEN_TCP: "off",
      };
      const main = join(root, "packages/daemon/src/main.ts");
      const { status, stderr } = spawnSync(process.execPath, [main], {
        env,
        encoding: "utf8",
        timeout: 30_000,
      });
      assert.equal(status, 1, stderr);
      assert.match(stderr, words);
    });
  }
});
