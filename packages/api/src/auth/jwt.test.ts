import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CaissonError, Scope } from "@caisson/contract";
import { exportJWK, type JWTHeaderParameters, SignJWT } from "jose";
import { createJwtVerifier } from "./jwt.ts";

const dir = mkdtempSync(join(tmpdir(), "caisson-jwt-"));
after(() => rmSync(dir, { recursive: true }));
const jwksFile = join(dir, "jwks.json");
const issuer = "https://issuer.example";
const audience = "caisson";
const pairs = {
  EdDSA: generateKeyPairSync("ed25519"),
  RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }),
};
const stranger = generateKeyPairSync("ed25519");
const now = Math.floor(Date.now() / 1000);

async function publish(keys: Record<string, KeyObject>, at = 0): Promise<void> {
  const jwks = await Promise.all(
    Object.entries(keys).map(async ([kid, key]) => ({ ...(await exportJWK(key)), kid, use: "sig" })),
  );
  writeFileSync(jwksFile, JSON.stringify({ keys: jwks }));
  if (at !== 0) utimesSync(jwksFile, at, at);
}
await publish(Object.fromEntries(Object.entries(pairs).map(([name, pair]) => [name, pair.publicKey])));
const verify = createJwtVerifier({ issuer, audience, jwksFile });

interface Overrides {
  header?: Partial<JWTHeaderParameters>;
  claims?: Record<string, unknown>;
  key?: KeyObject;
}

function token({ header = {}, claims = {}, key = pairs.EdDSA.privateKey }: Overrides = {}): Promise<string> {
  const payload = {
    iss: issuer,
    aud: audience,
    sub: "alice",
    exp: now + 60,
    scope: "caisson:read other",
    ...claims,
  };
  return new SignJWT(payload).setProtectedHeader({ alg: "EdDSA", kid: "EdDSA", ...header }).sign(key);
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const payload = { iss: issuer, aud: audience, sub: "alice", exp: now + 60, scope: "caisson:admin" };

async function refused(made: string | Promise<string>): Promise<void> {
  await assert.rejects(
    verify(await made),
    (error) => error instanceof CaissonError && error.code === "UNAUTHENTICATED",
  );
}

test("tokens of each public-key algorithm are accepted, with the scopes they name", async () => {
  for (const alg of ["EdDSA", "RS256", "ES256"] as const) {
    const identity = await verify(await token({ header: { alg, kid: alg }, key: pairs[alg].privateKey }));
    assert.equal(identity.actor, "jwt:alice");
    assert.deepEqual([...identity.scopes].sort(), [Scope.PUBLIC, Scope.READ]);
  }
});

test("claims are checked", async () => {
  await refused(token({ claims: { exp: now - 60 } }));
  await refused(token({ claims: { exp: undefined } }));
  await refused(token({ claims: { nbf: now + 60 } }));
  await refused(token({ claims: { aud: "other" } }));
  await refused(token({ claims: { iss: "https://evil.example" } }));
  await refused(token({ claims: { sub: undefined } }));
  await refused(token({ claims: { sub: "a\r\nb" } }));
  await refused(token({ claims: { sub: "a".repeat(200) } }));
});

test("no algorithm, and HMAC with a public key as its secret, are refused", async () => {
  await refused(`${encode({ alg: "none" })}.${encode(payload)}.`);
  await refused(`${encode({ alg: "none", kid: "EdDSA" })}.${encode(payload)}.AAAA`);
  for (const secret of [
    pairs.RS256.publicKey.export({ type: "spki", format: "pem" }),
    pairs.RS256.publicKey.export({ type: "spki", format: "der" }),
  ]) {
    const signed = `${encode({ alg: "HS256", kid: "RS256" })}.${encode(payload)}`;
    await refused(`${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`);
  }
});

test("a forged signature, another's key and a changed payload are refused", async () => {
  await refused(token({ key: stranger.privateKey }));
  const [head, , signature] = (await token()).split(".");
  await refused(`${head}.${encode(payload)}.${signature}`);
  await refused(token({ header: { kid: "../../../etc/passwd" } }));
  await refused(
    token({ header: { crit: ["x"], x: 1 } as never }).catch(
      () => `${encode({ alg: "EdDSA", kid: "EdDSA", crit: ["x"], x: 1 })}.${encode(payload)}.AA`,
    ),
  );
  await refused("x".repeat(10_000));
  await refused("a.b.c");
});

test("an address or key that the token brings along is never used", async () => {
  let fetched = 0;
  const server = createServer((_request, response) => {
    fetched++;
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  const jwk = await exportJWK(stranger.publicKey);
  for (const header of [{ jku: url }, { x5u: url }, { jwk }, { jku: url, jwk, kid: "nobody" }]) {
    await refused(token({ header: header as never, key: stranger.privateKey }));
  }
  assert.equal(fetched, 0);
  server.close();
});

test("keys are rotated by replacing the file", async () => {
  const fresh = generateKeyPairSync("ed25519");
  const old = await token();
  await verify(old);
  await publish({ fresh: fresh.publicKey }, now + 5);
  await refused(old);
  assert.equal(
    (await verify(await token({ header: { kid: "fresh" }, key: fresh.privateKey }))).actor,
    "jwt:alice",
  );
});
