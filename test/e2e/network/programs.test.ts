// What developers run, fetching over TLS from a mirror that the test serves: by the proxy, and without knowing of one.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createReadStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Box, type Client, connect } from "@caisson/client";
import {
  type NameServer,
  startNameServer,
} from "../../../packages/sandbox/src/egress/testing/name-server.ts";
import { accounts, startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { makeCertificate } from "../../support/network/certificate.ts";
import { makeMirror } from "../../support/network/mirror.ts";

const host = "mirror.test";
const address = "127.0.1.1";
const withoutProxy = "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY;";

/** Each prints or leaves something that only the mirror has; `$U` is the mirror. */
const programs: Record<string, { script: string; says: RegExp; proxy?: false }> = {
  curl: { script: "curl -sS $U/file", says: /^reached$/m },
  wget: { script: "wget -q --ca-certificate=$CA -O - $U/file", says: /^reached$/m },
  git: { script: "git clone -q $U/repo.git /tmp/$M-git && cat /tmp/$M-git/readme", says: /^reached$/m },
  npm: {
    script:
      "mkdir -p /tmp/$M-npm && cd /tmp/$M-npm && npm install --no-audit --no-fund --registry $U/npm/ demo && cat node_modules/demo/package.json",
    says: /"name":"demo"/,
  },
  pip: {
    script:
      "/usr/bin/python3 -m pip install -q --disable-pip-version-check --cert $CA --index-url $U/simple --target /tmp/$M-pip demo && PYTHONPATH=/tmp/$M-pip /usr/bin/python3 -c 'import demo; print(demo.word)'",
    says: /^reached$/m,
  },
  go: {
    script:
      "cd /tmp && GOPROXY=$U/go GOSUMDB=off GOFLAGS=-modcacherw GOPATH=/tmp/$M-go go mod download -json demo.test/mod@v1.0.0",
    says: /"Version": "v1.0.0"/,
  },
  // It reads no proxy variables: the second way was made for programs like this one.
  maven: {
    script: `mkdir -p /tmp/mvn && cd /tmp/mvn && keytool -importcert -noprompt -alias t -file $CA -keystore t.jks -storepass changeit 2>/dev/null
echo "<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>$U/maven</url></mirror></mirrors></settings>" > s.xml
echo '<project><modelVersion>4.0.0</modelVersion><parent><groupId>test.mirror</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent><artifactId>c</artifactId><packaging>pom</packaging></project>' > pom.xml
mvn -q -B -s s.xml -Dmaven.repo.local=/tmp/mvn/repo -Djavax.net.ssl.trustStore=/tmp/mvn/t.jks -Djavax.net.ssl.trustStorePassword=changeit validate && cat repo/test/mirror/parent/1/parent-1.pom`,
    says: /test\.mirror/,
    proxy: false,
  },
};

for (const account of accounts()) {
  describe(`programs fetch from a mirror, as ${account.name}`, () => {
    const dir = mkdtempSync("/tmp/caisson-mirror-");
    let server: Server;
    let names: NameServer;
    let daemon: TestDaemon;
    let client: Client;
    let box: Box;
    let url: string;

    before(async () => {
      names = await startNameServer();
      names.set(host, [address]);
      const certificate = makeCertificate([host]);
      server = createServer(certificate, (message, response) => {
        const path = join(dir, normalize(new URL(message.url!, "https://x").pathname));
        const file = [path, join(path, "index.html"), join(path, "index.json")].find((one) =>
          statSync(one, { throwIfNoEntry: false })?.isFile(),
        );
        if (!file) return void response.writeHead(404).end();
        if (file.endsWith(".json")) response.setHeader("Content-Type", "application/json");
        if (file.endsWith(".html")) response.setHeader("Content-Type", "text/html");
        createReadStream(file).pipe(response);
      });
      server.listen(0, address);
      await once(server, "listening");
      url = `https://${host}:${(server.address() as AddressInfo).port}`;
      makeMirror(dir, url);
      daemon = await startDaemon({ account, env: { CAISSON_NETWORK_DNS_SERVERS: names.address } });
      client = await connect({ socket: daemon.socket });
      const env = { U: url, CA: "/tmp/ca.pem", CURL_CA_BUNDLE: "/tmp/ca.pem", GIT_SSL_CAINFO: "/tmp/ca.pem" };
      const trust = {
        NODE_EXTRA_CA_CERTS: "/tmp/ca.pem",
        npm_config_cafile: "/tmp/ca.pem",
        SSL_CERT_FILE: "/tmp/ca.pem",
      };
      box = await client.create({ network: { allow: [host, address] }, env: { ...env, ...trust } });
      await box.files.write("/tmp/ca.pem", certificate.authority);
    });

    after(async () => {
      await client?.close();
      await daemon?.[Symbol.asyncDispose]();
      names?.close();
      server?.closeAllConnections();
      server?.close();
      rmSync(dir, { recursive: true, force: true });
    });

    for (const [name, { script, says, proxy = true }] of Object.entries(programs)) {
      // Starting Java is most of what that one takes: once is enough.
      if (name === "maven" && account.name !== accounts()[0]!.name) continue;
      for (const mode of proxy ? ["proxy", "transparent"] : ["transparent"]) {
        it(`${name}, ${mode}`, async () => {
          const prefix = mode === "proxy" ? "" : withoutProxy;
          const argv = ["sh", "-ec", `M=${mode}; ${prefix} ${script}`];
          const { stdout, stderr, code } = await box.run(argv, { timeout: 120_000 });
          assert.equal(code, 0, stdout.text + stderr.text);
          assert.match(stdout.text, says);
          const [latest] = await Array.fromAsync(box.network.decisions()).then((all) =>
            all.filter(({ allowed }) => allowed),
          );
          assert.equal(latest!.via, mode === "proxy" ? "connect" : "transparent");
        });
      }
    }

    it("the same programs are told why what they were not allowed is refused", async () => {
      const script =
        "curl -sS https://elsewhere.test/ ; npm view --fetch-retries=0 --registry https://elsewhere.test/ demo";
      const { stderr } = await box.run(["sh", "-c", script], { timeout: 60_000 });
      assert.match(stderr.text, /403/);
      assert.ok(names.questions.every((question) => !question.includes("elsewhere")));
    });
  });
}
