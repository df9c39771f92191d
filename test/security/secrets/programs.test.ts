// Programs that trust by different means: each reaches its host with a secret, through the sandbox's own authority.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Box } from "@caisson/client";
import { type Account, accounts } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { canaries, names, openWorld, type World } from "./world.ts";

for (const account of accounts()) programsOf(account, account.name === accounts()[0]!.name);

/** `all`: also those that take long. */
function programsOf(account: Account, all: boolean): void {
  describe(`programs with a secret, as ${account.name}`, { timeout: 300_000 }, () => {
    let world: World;
    let box: Box;
    before(async () => {
      world = await openWorld(account);
      box = await world.client.create({ network: world.network, secrets: ["API_TOKEN"] });
    });
    after(() => world?.[Symbol.asyncDispose]());

    const expectToken = async (script: string) => {
      const before = world.own.heard.length;
      const result = await box.run(["sh", "-c", script]);
      const heard = world.own.heard.slice(before);
      const words = `${result.stdout.text}${result.stderr.text}`;
      const sent = heard.map(({ headers }) => headers["x-token"] ?? headers.authorization ?? "");
      assert.ok(
        sent.some((value) => String(value).includes(canaries.env) || isBasic(String(value))),
        `${words}\n${sent}`,
      );
      assert.ok(!words.includes(canaries.env), words);
    };
    const isBasic = (value: string) =>
      Buffer.from(value.slice(6), "base64").toString().includes(canaries.env);

    it("curl and wget", async () => {
      await expectToken(`curl -sSf ${world.url}/ -H "X-Token: $API_TOKEN"`);
      await expectToken(
        `wget -qO- --header "X-Token: $API_TOKEN" --ca-certificate=$SSL_CERT_FILE ${world.url}/`,
      );
    });

    it("Node", () =>
      expectToken(
        `node -e 'require("https").get("${world.url}/", {headers: {"X-Token": process.env.API_TOKEN}}, (r) => {r.resume(); console.log(r.statusCode)})'`,
      ));

    it("programs that would rather speak HTTP/2 are told in the handshake to speak HTTP/1.1, and do", async () => {
      await expectToken(
        `test "$(curl -sSf --http2 -o /dev/null -w '%{http_version}' ${world.url}/ -H "X-Token: $API_TOKEN")" = 1.1`,
      );
      await expectToken(
        `node -e 'fetch("${world.url}/", {headers: {"X-Token": process.env.API_TOKEN}}).then((r) => console.log(r.status))'`,
      );
      const insisting = `const s = require("http2").connect("${world.url}"), r = s.request(); let t = "";
r.on("response", (h) => {t += h[":status"]}).on("data", (d) => {t += d}).on("end", () => {console.log(t); s.close()})`;
      const { stdout, stderr } = await box.run(["node", "-e", insisting], {
        timeout: 30_000,
        env: { NODE_EXTRA_CA_CERTS: "/home/agent/.caisson/trust/bundle.pem" },
      });
      assert.match(stdout.text, /^502caisson: /, stderr.text);
      // The program is told before the log is.
      await eventually(
        async () => {
          const query = { follow: false, types: ["network.failed"], sandboxId: box.id };
          const events = await Array.fromAsync(world.client.events.subscribe(query));
          return JSON.stringify(events.map(({ data }) => data));
        },
        (told) => told.includes("does not speak HTTP/2"),
      );
    });

    it("gRPC, which speaks HTTP/2 alone", async () => {
      const { stdout, stderr, code } = await box.run(
        ["/usr/bin/python3", "-c", grpcProgram(`${names.grpc}:${world.grpc.port}`)],
        { timeout: 60_000 },
      );
      assert.equal(code, 0, stderr.text);
      assert.equal(stdout.text, "b'hello'\nb'one' b'two' b'three'\nPERMISSION_DENIED\n");
      const heard = world.grpc.heard.map(({ headers }) => headers["x-token"]);
      assert.deepEqual(heard, Array(3).fill(canaries.env));
      assert.ok(!(stdout.text + stderr.text).includes(canaries.env));
    });

    it("Python", () =>
      expectToken(
        `/usr/bin/python3 -c 'import os, urllib.request as u; print(u.urlopen(u.Request("${world.url}/", headers={"X-Token": os.environ["API_TOKEN"]})).status)'`,
      ));

    it("git", () => expectToken(`git ls-remote https://user:$API_TOKEN@${world.url.slice(8)}/x.git; true`));

    // Its client offers HTTP/2 first.
    if (all)
      it("Go", async () => {
        const dir = mkdtempSync(join(tmpdir(), "caisson-go-"));
        writeFileSync(join(dir, "main.go"), goProgram(world.url));
        const env = { ...process.env, GO111MODULE: "off", GOTOOLCHAIN: "local", CGO_ENABLED: "0" };
        execFileSync("go", ["build", "-o", join(dir, "program"), join(dir, "main.go")], { env });
        await box.files.write("/tmp/program", readFileSync(join(dir, "program")), { mode: 0o755 });
        rmSync(dir, { recursive: true });
        await expectToken("/tmp/program");
      });

    // So does this client of Java's.
    if (all)
      it("Java", () =>
        expectToken(`mkdir -p /tmp/j && cd /tmp/j && cat > M.java <<'EOS'
import java.net.URI;
import java.net.http.*;
public class M {
  public static void main(String[] a) throws Exception {
    HttpRequest r = HttpRequest.newBuilder(URI.create("${world.url}/")).header("X-Token", System.getenv("API_TOKEN")).build();
    HttpResponse<String> s = HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString());
    System.out.println(s.version() + " " + s.statusCode());
  }
}
EOS
java M.java`));
  });
}

function goProgram(url: string): string {
  return `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	request, _ := http.NewRequest("GET", "${url}/", nil)
	request.Header.Set("X-Token", os.Getenv("API_TOKEN"))
	answer, err := http.DefaultClient.Do(request)
	fmt.Println(answer, err)
}
`;
}

/** By gRPC's own library: one message, a stream in both directions, and a refusal with a word of the host's. */
function grpcProgram(target: string): string {
  return `import grpc, os
channel = grpc.secure_channel("${target}", grpc.ssl_channel_credentials())
metadata = (("x-token", os.environ["API_TOKEN"]),)
print(channel.unary_unary("/echo.Echo/Say")(b"hello", metadata=metadata, timeout=30))
print(*channel.stream_stream("/echo.Echo/Say")(iter([b"one", b"two", b"three"]), metadata=metadata, timeout=30))
try: channel.unary_unary("/echo.Echo/Refuse")(b"x", metadata=metadata, timeout=30)
except grpc.RpcError as error: print(error.code().name)
`;
}
