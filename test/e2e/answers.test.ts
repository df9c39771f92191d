// What answers say beside what they are asked for: times, modes, sizes, sums. By plain HTTP, with the names of the contract.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { self, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import type { Parsed } from "../support/launcher.ts";

describe("answers", { timeout: 60_000 }, () => {
  let daemon: TestDaemon;
  const project = temporaryDirectory(self());
  before(async () => {
    daemon = await startDaemon();
    writeFileSync(join(project, "f"), "12");
    chmodSync(join(project, "f"), 0o644);
  });
  after(async () => {
    await daemon[Symbol.asyncDispose]();
    rmSync(project, { recursive: true });
  });

  const call = (method: string, path: string, body?: unknown): Promise<Parsed> =>
    new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { "content-type": "application/json" };
      const sent = request({ socketPath: daemon.socket, method, path, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (piece) => {
          text += piece;
        });
        answer.on("end", () =>
          answer.statusCode === 200
            ? resolve(JSON.parse(text))
            : reject(new Error(`${method} ${path}: ${text}`)),
        );
      });
      sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
  const isTime = (text: string) => Math.abs(Date.now() - Date.parse(text)) < 60_000;

  it("tell a sandbox's and a process's times, files as they are, and what is used", async () => {
    const spec = { workspace: { dir: project } };
    const { sandbox } = await call("POST", "/v1/sandboxes", { spec, no_wait: true });
    const at = `/v1/sandboxes/${sandbox.id}`;
    const ready = await eventually(
      async () => (await call("GET", at)).sandbox,
      ({ state }) => state === "SANDBOX_STATE_READY",
    );
    assert.ok(isTime(ready.created_at) && isTime(ready.ready_at) && !ready.ended_at, JSON.stringify(ready));
    const script = "printf 12345 > f; chmod 755 f";
    const { process_id, exit } = await call("POST", `${at}:exec`, {
      command: { argv: ["sh", "-c", script] },
    });
    assert.deepEqual([exit.code, exit.disk_exceeded, exit.project_touched], [0, false, false]);
    for (const [program, touches] of [
      ["true", false],
      ["touch", true],
    ] as const) {
      const run = await call("POST", "/v1/run", { spec, command: { argv: [program, "other"] } });
      assert.equal(run.exit.project_touched, touches, program);
    }
    const { process } = await call("GET", `${at}/processes/${process_id}`);
    assert.ok(isTime(process.started_at) && isTime(process.ended_at));
    assert.equal(process.has_terminal, false);
    const { info } = await call("GET", `${at}/files/stat?path=f`);
    assert.ok(isTime(info.modified_at), JSON.stringify(info));
    const { stats } = await call("GET", `${at}/stats`);
    assert.ok(Number(stats.memory_peak_bytes) > 0, JSON.stringify(stats));
    const { changes } = await call("GET", `${at}/workspace/diff`);
    const { path, old_mode, new_mode, old_size, new_size } = changes[0];
    assert.deepEqual([path, old_mode, new_mode, old_size, new_size], ["f", 0o644, 0o755, "2", "5"]);
    await call("POST", `${at}/workspace:apply`, {});
    const undone = await call("POST", `${at}/workspace:undo`, {});
    assert.equal(undone.undone, 1);
    await call("DELETE", at);
    assert.ok(isTime((await call("GET", at)).sandbox.ended_at));
    const { items } = await call("GET", "/v1/usage");
    const ended = items.find(({ what }: Parsed) => what === "ended");
    assert.ok(Number(ended.freeable_bytes) > 0, JSON.stringify(items));
  });

  it("tell what profiles allow and when keys expire", async () => {
    const { profiles } = await call("GET", "/v1/profiles");
    const restrictive = profiles.find(({ name }: Parsed) => name === "restrictive");
    assert.ok(Array.isArray(restrictive.allow_write) && Array.isArray(restrictive.deny_read));
    assert.equal(restrictive.network_rules.mode, "NETWORK_MODE_OFF");
    const { key } = await call("POST", "/v1/keys", { name: "short", scopes: ["SCOPE_READ"], ttl_s: 30 });
    assert.ok(isTime(key.expires_at));
  });

  it("count what passed the door, in sum and for each connection", async () => {
    const server = createServer((_request, response) => response.end("x".repeat(5000))).listen(
      0,
      "127.0.0.1",
    );
    // Nothing may keep the test from its end.
    server.unref();
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const network = { mode: "NETWORK_MODE_ALLOW", allow: [`127.0.0.1:${port}`] };
    const { sandbox } = await call("POST", "/v1/sandboxes", { spec: { network } });
    const command = { argv: ["curl", "-s", "--noproxy", "", `http://127.0.0.1:${port}/`] };
    const { stdout } = await call("POST", `/v1/sandboxes/${sandbox.id}:exec`, { command });
    assert.equal(stdout.text.length, 5000);
    const { usage } = await call("GET", `/v1/sandboxes/${sandbox.id}/network`);
    assert.ok(Number(usage.received_bytes) >= 5000, JSON.stringify(usage));
    await eventually(
      async () => (await call("GET", `/v1/network/decisions?sandbox_id=${sandbox.id}`)).decisions[0],
      (decision) => Number(decision?.received_bytes) >= 5000,
    );
  });
});
