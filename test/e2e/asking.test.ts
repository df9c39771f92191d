// A destination that no rule allows: the connection waits until somebody answers, at the terminal or elsewhere.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { startNameServer } from "../../packages/sandbox/src/egress/testing/name-server.ts";
import { startDaemon, type TestDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { ending, Launcher } from "../support/launcher.ts";

describe("a connection that has to be asked for", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  let port: number;
  let close: () => void;
  const heard: string[] = [];
  before(async () => {
    const dns = await startNameServer();
    dns.set("asked.example.test", ["127.0.0.1"]);
    const server = createServer((request, response) => {
      heard.push(request.url!);
      response.end("reached\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    const env = { CAISSON_NETWORK_DNS_SERVERS: dns.address, CAISSON_APPROVALS_TIMEOUT_S: "30" };
    daemon = await startDaemon({ env });
    client = await connect({ socket: daemon.socket });
    close = () => {
      server.close();
      dns.close();
    };
  });
  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
    close();
  });

  const words = (path: string) => [
    "run",
    "--no-workspace",
    "--net",
    "ask",
    "--allow",
    `127.0.0.1:${port}`,
    "--",
    "curl",
    "-sS",
    `http://asked.example.test:${port}${path}`,
  ];
  const pending = async () => {
    const list = () => Array.fromAsync(client.approvals.list());
    const [approval] = await eventually(list, (found) => found.length > 0);
    return approval!;
  };

  it("waits, and goes on when somebody allows it", async () => {
    const child = new Launcher(daemon).start(words("/allowed"));
    let told = "";
    child.stderr!.on("data", (data) => {
      told += data;
    });
    const running = ending(child);
    const approval = await pending();
    assert.deepEqual([approval.kind, approval.subject], ["network", `asked.example.test:${port}`]);
    assert.match(approval.requestedBy, /^sandbox:sb_/);
    // Whoever started it is told how to answer, unless somebody was quicker.
    await eventually(
      () => told,
      (text) => text.includes(`caisson approvals allow ${approval.id}`),
    );
    await client.approvals.allow(approval.id);
    const { out, err } = await running;
    assert.equal(out, "reached\n", err);
  });

  it("is refused when somebody denies it, and nothing leaves", async () => {
    const running = ending(new Launcher(daemon).start(words("/denied")));
    await client.approvals.deny((await pending()).id);
    const { out } = await running;
    assert.ok(!out.includes("reached"), out);
    assert.ok(!heard.includes("/denied"));
  });

  it("is asked about at the terminal that started it", async () => {
    const script = [join(daemon.account.root, ".caisson/bin/caisson"), ...words("/typed")].join(" ");
    const child = spawn("script", ["--quiet", "--return", "--command", script, "/dev/null"], {
      env: { ...daemon.env, TERM: "xterm" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let said = "";
    child.stdout.on("data", (data) => {
      said += data;
    });
    const ended = ending(child);
    await eventually(
      () => said,
      (text) => /wants network asked\.example\.test:\d+: .*Allow\? \[y\]es once/.test(text),
    );
    child.stdin.write("y\n");
    const { out } = await ended;
    assert.match(out, /reached/);
    assert.ok(heard.includes("/typed"));
  });

  it("holds for always once somebody said so, for every sandbox", async () => {
    const running = ending(new Launcher(daemon).start(words("/first")));
    await client.approvals.allow((await pending()).id, { scope: "always" });
    assert.equal((await running).out, "reached\n");
    assert.equal((await new Launcher(daemon).run(words("/second"))).out, "reached\n");
  });
});
