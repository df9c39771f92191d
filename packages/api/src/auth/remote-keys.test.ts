import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyPairKeyObjectResult } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exportJWK, SignJWT } from "jose";
import { createJwtVerifier } from "./jwt.ts";
import type { RemoteKeysTimes } from "./remote-keys.ts";

const issuer = "https://issuer.example";
const audience = "caisson";
const pair = () => generateKeyPairSync("ed25519");

/** An issuer that publishes keys, and what it was asked. */
async function startIssuer() {
  const asked: string[] = [];
  let answer: RequestListener = (_request, response) => response.end("{}");
  const server = createServer((request, response) => {
    asked.push(request.url!);
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  return {
    asked,
    url,
    answer(listener: RequestListener) {
      answer = listener;
    },
    async publish(keys: Record<string, KeyPairKeyObjectResult>) {
      const jwks = await Promise.all(
        Object.entries(keys).map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid })),
      );
      answer = (_request, response) => response.end(JSON.stringify({ keys: jwks }));
    },
    verifier: (times: Partial<RemoteKeysTimes> = {}) =>
      createJwtVerifier({ issuer, audience, jwksUrl: url, times }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function token(kid: string, { privateKey }: KeyPairKeyObjectResult): Promise<string> {
  return new SignJWT({ sub: "alice", scope: "caisson:read" })
    .setProtectedHeader({ alg: "EdDSA", kid })
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime("1m")
    .sign(privateKey);
}

test("keys are fetched once for many tokens, and again when a new one appears", async () => {
  await using server = await startIssuer();
  const [old, fresh] = [pair(), pair()];
  await server.publish({ old });
  const verify = server.verifier({ between: 0 });
  await Promise.all(Array.from({ length: 20 }, async () => verify(await token("old", old))));
  assert.equal(server.asked.length, 1);
  await server.publish({ fresh });
  assert.equal((await verify(await token("fresh", fresh))).actor, "jwt:alice");
  assert.equal(server.asked.length, 2);
  await assert.rejects(verify(await token("old", old)), { code: "UNAUTHENTICATED" });
});

test("unknown key ids cannot make us ask the issuer again and again", async () => {
  await using server = await startIssuer();
  const [known, stranger] = [pair(), pair()];
  await server.publish({ known });
  const verify = server.verifier();
  for (const kid of ["a", "b", "../../etc/passwd", "http://evil.example/"]) {
    await assert.rejects(verify(await token(kid, stranger)), { code: "UNAUTHENTICATED" });
  }
  assert.deepEqual(server.asked, ["/jwks"]);
  await verify(await token("known", known));
});

test("an issuer that is down accepts nobody, and is not asked for every token", async () => {
  await using server = await startIssuer();
  const key = pair();
  server.answer((_request, response) => response.writeHead(503).end());
  const verify = server.verifier();
  for (let times = 0; times < 5; times++) {
    await assert.rejects(verify(await token("key", key)), { code: "UNAVAILABLE" });
  }
  assert.equal(server.asked.length, 1);
});

test("keys that are too old and cannot be fetched again accept nobody; later they do", async () => {
  await using server = await startIssuer();
  const key = pair();
  await server.publish({ key });
  const verify = server.verifier({ keptFor: 20, afterFailure: 0 });
  await verify(await token("key", key));
  server.answer((request) => request.socket.destroy());
  await sleep(30);
  await assert.rejects(verify(await token("key", key)), { code: "UNAVAILABLE" });
  await server.publish({ key });
  await verify(await token("key", key));
});

const bad: [string, RequestListener][] = [
  ["a redirect", (_request, response) => response.writeHead(302, { location: "http://127.0.0.1:9/" }).end()],
  ["no JSON", (_request, response) => response.end("<html>")],
  ["no keys", (_request, response) => response.end('{"keys":"none"}')],
  [
    "an endless answer",
    (_request, response) => {
      const more = () => {
        while (response.write(" ".repeat(65_536)));
        response.once("drain", more);
      };
      more();
    },
  ],
];
for (const [what, answer] of bad) {
  test(`an issuer that answers with ${what} accepts nobody`, async () => {
    await using server = await startIssuer();
    server.answer(answer);
    await assert.rejects(server.verifier()(await token("key", pair())), { code: "UNAVAILABLE" });
  });
}

test("an issuer that does not answer is given up", { timeout: 30_000 }, async () => {
  await using server = await startIssuer();
  server.answer((_request, response) => response.writeHead(200).flushHeaders());
  await assert.rejects(server.verifier()(await token("key", pair())), { code: "UNAVAILABLE" });
});

test("keys come by https, or from this machine", () => {
  for (const jwksUrl of ["http://issuer.example/jwks", "file:///etc/passwd", "issuer.example", ""]) {
    assert.throws(() => createJwtVerifier({ issuer, audience, jwksUrl }), { code: "CONFIG_INVALID" });
  }
});
