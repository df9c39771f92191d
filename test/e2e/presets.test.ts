// A mirror of the developer's own: a preset opens exactly that, and tells the tools inside about it.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startNameServer } from "../../packages/sandbox/src/egress/testing/name-server.ts";
import { self, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { Launcher } from "../support/launcher.ts";

describe("presets", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let caisson: Launcher;
  let port: number;
  let close: () => void;
  const home = temporaryDirectory(self());
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), text);
  };
  before(async () => {
    const dns = await startNameServer();
    dns.set("mirror.example.test", ["127.0.0.1"]);
    const server = createServer((request, response) => {
      const found = request.url === "/npm/made-up-package";
      response.writeHead(found ? 200 : 404, { "Content-Type": "application/json" });
      const version = { name: "made-up-package", version: "1.2.3", dist: { tarball: "x", shasum: "0" } };
      response.end(
        JSON.stringify(
          found
            ? { name: "made-up-package", "dist-tags": { latest: "1.2.3" }, versions: { "1.2.3": version } }
            : {},
        ),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    write(
      ".npmrc",
      `registry=http://mirror.example.test:${port}/npm/\n//mirror.example.test/:_authToken=canary\n`,
    );
    write(".config/pip/pip.conf", "[global]\nindex-url = https://user:canary@pip.example.test/simple\n");
    write(".config/go/env", "GOPROXY=https://go.example.test,direct\n");
    write("project/.git/config", '[remote "origin"]\n\turl = git@code.example.test:team/project.git\n');
    daemon = await startDaemon({ env: { HOME: home, CAISSON_NETWORK_DNS_SERVERS: dns.address } });
    caisson = new Launcher(daemon, join(home, "project"));
    close = () => {
      server.close();
      dns.close();
    };
  });
  after(async () => {
    await daemon[Symbol.asyncDispose]();
    close();
    rmSync(home, { recursive: true, force: true });
  });

  it("show what they lead to now, and from where", async () => {
    const { out } = await caisson.run(["net", "presets"]);
    assert.match(out, new RegExp(`npm +mirror\\.example\\.test:${port} +.*\\.npmrc`));
    assert.match(out, /pip +pip\.example\.test:443/);
    assert.match(out, /go +go\.example\.test:443/);
    assert.match(out, /git +code\.example\.test:22 .*of the project/);
    assert.match(
      (await caisson.run(["profile", "show", "moderate"])).out,
      /pip +pip\.example\.test:443 .*pip\.conf/,
    );
    assert.ok(!out.includes("canary"));
  });

  it("open what the developer's own npm uses, and nothing else", async () => {
    const inside = (...words: string[]) =>
      caisson.run(["run", "--preset", "npm", "--allow", `127.0.0.1:${port}`, "--", ...words]);
    const viewed = await inside("npm", "view", "made-up-package", "version");
    assert.equal(viewed.out.trim(), "1.2.3", viewed.err);
    const refused = await inside(
      "curl",
      "-sS",
      "-o",
      "/dev/null",
      "-w",
      "%{http_code}",
      "http://pip.example.test/",
    );
    assert.equal(refused.out, "403");
  });

  it("tell the tools inside, without credentials", async () => {
    const words = ["run", "--preset", "npm", "--preset", "pip", "--preset", "go", "--", "env"];
    const { out } = await caisson.run(words);
    assert.match(out, new RegExp(`npm_config_registry=http://mirror\\.example\\.test:${port}/npm/\n`));
    assert.match(out, /PIP_INDEX_URL=https:\/\/pip\.example\.test\/simple\n/);
    assert.match(out, /GOPROXY=https:\/\/go\.example\.test/);
    assert.ok(!out.includes("canary"));
  });

  it("name no preset that there is not", async () => {
    const { code, err } = await caisson.run(["run", "--preset", "nmp", "--", "true"]);
    assert.equal(code, 125);
    assert.match(err, /there are npm, pip, cargo, go, maven, git/);
  });
});
