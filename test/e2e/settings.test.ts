// Settings of the network's faces that only a daemon of their own shows.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { self, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";

const key = generateKeyPairSync("ed25519");

function token(claims: Record<string, unknown>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const body = { iss: "https://i.example", sub: "s", scope: "caisson:read", exp: now + 600, ...claims };
  const text = `${part({ alg: "EdDSA", kid: "k" })}.${part(body)}`;
  return `${text}.${sign(null, Buffer.from(text), key.privateKey).toString("base64url")}`;
}

describe("the user's file", { timeout: 60_000 }, () => {
  let daemon: TestDaemon;
  let port: number;
  before(async () => {
    const home = temporaryDirectory(self());
    chmodSync(home, 0o700);
    const jwks = join(home, "jwks.json");
    writeFileSync(jwks, JSON.stringify({ keys: [{ ...key.publicKey.export({ format: "jwk" }), kid: "k" }] }));
    const settings = {
      listen: { allowed_hosts: ["caisson.example"], requests_per_second: 5 },
      auth: { jwt: { issuer: "https://i.example", audience: "mine", jwks_file: jwks } },
    };
    writeFileSync(join(home, "config.yaml"), JSON.stringify(settings));
    // The variable would beat the file.
    daemon = await startDaemon({ home, env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
    const found = await eventually(
      () => /"address":"http:[^"]+:(\d+)"/.exec(daemon.log()),
      (match) => match !== null,
    );
    port = Number(found![1]);
  });
  after(async () => {
    await daemon[Symbol.asyncDispose]();
    rmSync(daemon.home, { recursive: true });
  });

  const get = (path: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const call = request({ host: "127.0.0.1", port, path, headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode!);
      });
      call.on("error", reject).end();
    });

  it("names hosts that requests may be addressed to", async () => {
    assert.equal(await get("/v1/health", { host: "caisson.example" }), 200);
    assert.equal(await get("/v1/health", { host: "other.example" }), 403);
  });

  it("names the audience of tokens and the file of the issuer's keys", async () => {
    const as = (aud: string, sub: string) =>
      get("/v1/sessions", { authorization: `Bearer ${token({ aud, sub })}` });
    assert.equal(await as("mine", "audience"), 200);
    assert.equal(await as("caisson", "audience"), 401);
  });

  it("bounds how often one caller may call, and nobody else waits for that", async () => {
    const as = (sub: string) =>
      get("/v1/sessions", { authorization: `Bearer ${token({ aud: "mine", sub })}` });
    const answers = await Promise.all(Array.from({ length: 30 }, () => as("eager")));
    assert.ok(answers.includes(200) && answers.includes(429), answers.join());
    assert.equal(await as("calm"), 200);
  });
});
