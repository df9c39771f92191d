// What developers run, fetching over TLS from a mirror for which their tools are configured: by the proxy, and without knowing of
// one. Nothing is told to the programs but what the presets found.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createReadStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Box, type Client, connect } from "@caisson/client";
import {
  type NameServer,
  startNameServer,
} from "../../../packages/sandbox/src/egress/testing/name-server.ts";
import { accounts, startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { Launcher } from "../../support/launcher.ts";
import { makeCertificate } from "../../support/network/certificate.ts";
import { type Developer, makeDeveloper } from "../../support/network/developer.ts";
import { makeMirror } from "../../support/network/mirror.ts";

const host = "mirror.test";
const address = "127.0.1.1";
const withoutProxy = "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY;";
const ca = "/tmp/ca.pem";

/** Each prints or leaves something that only the mirror has; `$U` is the mirror. */
const programs: Record<string, { script: string; says: RegExp; proxy?: string }> = {
  curl: { script: "curl -sS $U/file", says: /^reached$/m },
  wget: { script: `wget -q --ca-certificate=${ca} -O - $U/file`, says: /^reached$/m },
  git: {
    script: "git clone -q https://code.example.test/repo.git /tmp/$M-git && cat /tmp/$M-git/readme",
    says: /^reached$/m,
  },
  npm: {
    script:
      "mkdir -p /tmp/$M-npm && cd /tmp/$M-npm && npm install --no-audit --no-fund demo && cat node_modules/demo/package.json",
    says: /"name":"demo"/,
  },
  pip: {
    script:
      "/usr/bin/python3 -m pip install -q --disable-pip-version-check --target /tmp/$M-pip demo && PYTHONPATH=/tmp/$M-pip /usr/bin/python3 -c 'import demo; print(demo.word)'",
    says: /^reached$/m,
  },
  cargo: {
    script: `mkdir -p /tmp/$M-cargo/src && cd /tmp/$M-cargo && export CARGO_HOME=/tmp/$M-cargo/home
mkdir home && cp ~/.cargo/config.toml home
printf '[package]\\nname = "c"\\nversion = "1.0.0"\\nedition = "2021"\\n[dependencies]\\ndemo = "1"\\n' > Cargo.toml
echo 'fn main() {}' > src/main.rs
cargo fetch -q && cat home/registry/src/*/demo-1.0.0/src/lib.rs`,
    says: /reached/,
  },
  go: {
    script: "cd /tmp && GOFLAGS=-modcacherw GOPATH=/tmp/$M-go go mod download -json demo.test/mod@v1.0.0",
    says: /"Version": "v1.0.0"/,
  },
  // It reads no proxy variables: the second way was made for programs like this one.
  maven: {
    script: `export JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"; mkdir -p /tmp/$M-mvn && cd /tmp/$M-mvn
test -f /tmp/t.jks || keytool -importcert -noprompt -alias t -file ${ca} -keystore /tmp/t.jks -storepass changeit 2>/dev/null
echo '<project><modelVersion>4.0.0</modelVersion><parent><groupId>test.mirror</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent><artifactId>c</artifactId><packaging>pom</packaging></project>' > pom.xml
mvn -q -B -Dmaven.repo.local=repo -Djavax.net.ssl.trustStore=/tmp/t.jks -Djavax.net.ssl.trustStorePassword=changeit validate && cat repo/test/mirror/parent/1/parent-1.pom`,
    says: /test\.mirror/,
    proxy:
      "sed -i 's|<mirrors>|<proxies><proxy><id>p</id><protocol>https</protocol><host>127.0.0.1</host><port>14128</port></proxy></proxies>&|' ~/.m2/settings.xml;",
  },
};

for (const account of accounts()) {
  describe(`programs fetch from the developer's mirror, as ${account.name}`, () => {
    const dir = mkdtempSync(join(tmpdir(), "caisson-mirror-"));
    let server: Server;
    let names: NameServer;
    let developer: Developer;
    let daemon: TestDaemon;
    let client: Client;
    let box: Box;
    let url: string;
    const trust = {
      CURL_CA_BUNDLE: ca,
      GIT_SSL_CAINFO: ca,
      NODE_EXTRA_CA_CERTS: ca,
      // The machine's own configuration of npm may name a bundle.
      npm_config_cafile: ca,
      SSL_CERT_FILE: ca,
      PIP_CERT: ca,
      CARGO_HTTP_CAINFO: ca,
    };

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
      developer = makeDeveloper(account, url, certificate.authority);
      daemon = await startDaemon({
        account,
        env: { ...developer.env, CAISSON_NETWORK_DNS_SERVERS: names.address },
      });
      client = await connect({ socket: daemon.socket });
      const presets = ["npm", "pip", "cargo", "go", "maven", "git"];
      box = await client.create({ network: { presets }, env: { U: url, ...trust } });
      await box.files.write(ca, certificate.authority);
    });

    after(async () => {
      await client?.close();
      await daemon?.[Symbol.asyncDispose]();
      names?.close();
      server?.closeAllConnections();
      server?.close();
      developer?.[Symbol.dispose]();
      rmSync(dir, { recursive: true, force: true });
    });

    for (const [name, { script, says, proxy = "" }] of Object.entries(programs)) {
      for (const mode of ["transparent", "proxy"]) {
        it(`${name}, ${mode}`, async () => {
          const prefix = mode === "proxy" ? proxy : withoutProxy;
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

    it("a repository is cloned over the network by one command", async () => {
      const session = await client.sessions.open("clones", { network: { presets: ["npm"] }, env: trust });
      await session.files.write(ca, (await box.files.read(ca)).text);
      const caisson = new Launcher(daemon, "/tmp");
      const clone = ["git", "clone", "--session", "clones", `${url}/repo.git`, "/tmp/copy"];
      const { err, code } = await caisson.run(clone);
      assert.equal(code, 0, err);
      const script =
        "cd /tmp/copy && cat readme && git log --format=%s && git remote get-url origin && git fetch -q && git status -sb";
      const seen = await caisson.run(["exec", "clones", "--", "sh", "-c", script]);
      assert.equal(seen.out, `reached\none\n${url}/repo.git\n## main...origin/main\n`, seen.err);
      const refused = await caisson.run(["git", "clone", `${url}/repo.git`, "copy"]);
      assert.notEqual(refused.code, 0);
      assert.match(refused.err, /403|caisson/);
    });

    it("nothing of it holds what the developer logs in with", async () => {
      const { stdout } = await box.run(["sh", "-c", "env; cat ~/.npmrc ~/.cargo/*.toml ~/.m2/settings.xml"]);
      assert.match(stdout.text, new RegExp(`npm_config_registry=${url}/npm/`));
      assert.match(stdout.text, /@team:registry=/);
      assert.match(stdout.text, /caisson-mirror/);
      assert.match(stdout.text, /<mirrorOf>/);
      assert.ok(!stdout.text.includes("canary"), stdout.text);
    });

    it("the same programs are told why what they were not allowed is refused", async () => {
      const script =
        "curl -sS https://elsewhere.test/ ; npm view --fetch-retries=0 --registry https://elsewhere.test/ demo";
      const { stderr } = await box.run(["sh", "-c", script], { timeout: 60_000 });
      assert.match(stderr.text, /403/);
      assert.ok(names.questions.every((question) => !question.includes("elsewhere")));
    });
  });
}
