import assert from "node:assert/strict";
import { type ClientHttp2Session, connect as http2Connect } from "node:http2";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import type { Refusal } from "../../egress/refusal.ts";
import { Authority } from "../authority.ts";
import { type GrantedSecret, Injector } from "../injector.ts";
import { SecretInterceptor } from "../interceptor.ts";
import { startHost } from "../testing/host.ts";
import { startHttp2Host } from "../testing/http2-host.ts";

const real = "ghp_RealValueThatMustNeverBeSeenInside";
const placeholder = "ghp_PlaceholderPlaceholderPlaceholder00";
const foreign = "csp_ForeignForeignForeignForeignForeign00";
const name = "api.example.test";

const own: GrantedSecret = {
  name: "TOKEN",
  placeholder,
  inject: ["header", "basic", "body"],
  value: () => real,
  covers: (host, _port, tls) => host === name && tls,
};
const others: GrantedSecret = { ...own, name: "OTHER", placeholder: foreign, covers: () => false };

/** A program that knows HTTP/2 alone, the interceptor and a host. */
async function between(
  host: Pick<Awaited<ReturnType<typeof startHttp2Host>>, "port" | "certificate" | "dial">,
  protocols = ["h2"],
) {
  const record = Authority.make("one sandbox");
  const interceptor = new SecretInterceptor(new Injector([own, others]), new Authority(record), [
    host.certificate,
  ]);
  const [inside, outside] = duplexPair();
  const told: string[] = [];
  const target = {
    name,
    port: host.port,
    tls: true,
    dial: host.dial,
    refused: ({ verdict }: Refusal) => void told.push(`refused: ${verdict.rule}`),
    failed: (reason: string) => void told.push(`failed: ${reason}`),
  };
  const served = interceptor.serve(
    outside,
    target,
    (type, { secret }) => void told.push(`${type} ${secret}`),
  );
  const secure: TLSSocket = tlsConnect({
    socket: inside,
    ca: record.certificate,
    servername: name,
    ALPNProtocols: protocols,
  });
  secure.on("error", () => {});
  const session = http2Connect(`https://${name}:${host.port}`, { createConnection: () => secure });
  session.on("error", () => {});
  return {
    told,
    served,
    session,
    authority: `${name}:${host.port}`,
    [Symbol.dispose]() {
      session.destroy();
      secure.destroy();
      outside.destroy();
    },
  };
}

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: string;
  trailers: Record<string, unknown>;
  code: number;
}

function call(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  ...pieces: string[]
): Promise<Answer> {
  const stream = session.request({ ":method": "POST", ...headers }, { endStream: pieces.length === 0 });
  const answer: Answer = { status: 0, headers: {}, body: "", trailers: {}, code: 0 };
  stream.on("response", ({ ":status": status, ...rest }) => Object.assign(answer, { status, headers: rest }));
  stream.on("trailers", (trailers) => Object.assign(answer, { trailers }));
  stream.on("data", (piece: Buffer) => {
    answer.body += piece.toString("latin1");
  });
  stream.on("error", () => {});
  for (const piece of pieces) stream.write(piece);
  if (pieces.length > 0) stream.end();
  return new Promise((resolve) =>
    stream.on("close", () => resolve({ ...answer, code: stream.rstCode ?? 0 })),
  );
}

const grpc = { "content-type": "application/grpc", te: "trailers", ":path": "/echo.Echo/Say" };

test("a program that speaks HTTP/2 alone has its secret put in, and taken out of headers, body and trailers", async () => {
  using host = await startHttp2Host(name);
  using both = await between(host);
  const [one, two] = await Promise.all([
    call(both.session, { ...grpc, "x-token": placeholder, range: "bytes=0-1" }, "a message"),
    call(
      both.session,
      { ":path": `/plain?t=${foreign}`, "x-token": foreign },
      `body=${placeholder}&${foreign}`,
    ),
  ]);
  assert.deepEqual([one.status, one.body, one.trailers["grpc-status"]], [200, "a message", "0"]);
  const [said] = host.heard.filter(({ headers }) => headers["content-type"] === "application/grpc");
  assert.equal(said!.headers["x-token"], real);
  assert.equal(said!.headers.te, "trailers");
  assert.deepEqual([said!.headers["grpc-accept-encoding"], said!.headers.range], ["identity", undefined]);
  assert.ok(!JSON.stringify([one, two]).includes(real));
  assert.match(String(one.headers["x-echo"]), /^ghp_Placeholder/);
  assert.match(String(one.trailers["x-echo-last"]), /^ghp_Placeholder/);
  const [plain] = host.heard.filter(({ headers }) => headers["content-type"] !== "application/grpc");
  assert.equal(plain!.body, `body=${real}&${"x".repeat(foreign.length)}`);
  assert.ok(!JSON.stringify(plain).includes(foreign));
  assert.deepEqual(both.told.sort(), ["secret.stripped OTHER", "secret.used TOKEN"]);
});

test("messages of gRPC keep their length, whatever they hold", async () => {
  using host = await startHttp2Host(name);
  using both = await between(host);
  const { body } = await call(both.session, grpc, `xxxxx${placeholder}${foreign}`);
  assert.equal(host.heard[0]!.body, `xxxxx${placeholder}${"x".repeat(foreign.length)}`);
  assert.equal(body.length, 5 + placeholder.length + foreign.length);
});

test("streams go both ways as they come, many at once, and large ones whole", async () => {
  using host = await startHttp2Host(name);
  using both = await between(host);
  const stream = both.session.request({ ":method": "POST", ...grpc });
  for (const word of ["one", "two", "three"]) {
    stream.write(word);
    const [piece] = (await new Promise<Buffer[]>((resolve) =>
      stream.once("data", (data) => resolve([data])),
    )) as [Buffer];
    assert.equal(piece.toString(), word);
  }
  stream.close();
  const large = "z".repeat(3_000_000);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => call(both.session, grpc, i === 7 ? large : `message ${i}`)),
  );
  assert.equal(answers[7]!.body, large);
  assert.ok(answers.every(({ trailers }) => trailers["grpc-status"] === "0"));
});

test("a host's refusal without a body, its reset, and what it compresses reach the program as they should", async () => {
  using host = await startHttp2Host(name);
  using both = await between(host);
  const refused = await call(both.session, { ...grpc, ":path": "/e.E/Refuse", "x-token": placeholder }, "x");
  assert.equal(refused.headers["grpc-status"], "7");
  assert.match(String(refused.headers["grpc-message"]), /^ghp_Placeholder/);
  const broken = await call(both.session, { ...grpc, ":path": "/e.E/Break" }, "x");
  assert.ok(broken.code !== 0 || broken.status === 502, JSON.stringify(broken));
  assert.equal((await call(both.session, { ...grpc, ":path": "/e.E/Packed" }, "x")).status, 502);
});

test("another host, scheme or way of asking is refused, and told", async () => {
  using host = await startHttp2Host(name);
  using both = await between(host);
  for (const odd of [{ ":authority": "evil.test" }, { host: "evil.test" }, { ":scheme": "http" }] as Record<
    string,
    string
  >[])
    assert.equal((await call(both.session, { ...grpc, "x-token": placeholder, ...odd }, "x")).status, 421);
  assert.equal(host.heard.length, 0);
  assert.deepEqual([...new Set(both.told)], ["refused: host header"]);
});

test("a host that knows no HTTP/2 is told of, and so is a program that knows no HTTP", async () => {
  using host = await startHost(name);
  using both = await between(host);
  assert.equal((await call(both.session, grpc, "x")).status, 502);
  assert.deepEqual(both.told, [`failed: ${name} does not speak HTTP/2, and the program speaks nothing else`]);
  using other = await between(host, ["imap"]);
  await other.served;
  assert.deepEqual(other.told, ["refused: protocol"]);
});
