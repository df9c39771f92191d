// A sandboxed agent that wants to answer its own request, even with a key that may.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { accounts, startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";

for (const account of accounts()) {
  describe(`a sandbox that would answer itself, as ${account.name}`, { timeout: 120_000 }, () => {
    let daemon: TestDaemon;
    let client: Client;
    let port: string;
    before(async () => {
      daemon = await startDaemon({ account, env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
      client = await connect({ socket: daemon.socket });
      const address = () => /"address":"http:[^"]+:(\d+)"/.exec(daemon.log());
      port = (await eventually(address, (match) => match !== null))![1]!;
    });
    after(async () => {
      await client.close();
      await daemon[Symbol.asyncDispose]();
    });

    it("reaches neither the daemon's port nor its socket, whatever its rules and keys", async () => {
      const key = await client.keys.create("leaked", { scopes: ["read", "write", "approve", "admin"] });
      const network = { mode: "ask" as const, allow: [`127.0.0.1:${port}`, `localhost:${port}`] };
      const box = await client.create({ network, env: { KEY: key.secret } });
      const run = await box.exec(["curl", "-sS", "http://asked.example.test/"]);
      const list = () => Array.fromAsync(client.approvals.list());
      const [approval] = await eventually(list, (found) => found.length > 0);
      const path = `v1/approvals/${approval!.id}:decide`;
      const call = `curl -sS --max-time 5 -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '{"allow":true}'`;
      const tries = [
        `${call} http://127.0.0.1:${port}/${path}`,
        `${call} --noproxy '*' http://127.0.0.1:${port}/${path}`,
        `${call} --proxy "$HTTP_PROXY" http://127.0.0.1:${port}/${path}`,
        `${call} --proxy "$HTTP_PROXY" http://localhost:${port}/${path}`,
        `${call} --proxy "socks5h://\${HTTP_PROXY#http://}" http://2130706433:${port}/${path}`,
        `${call} --unix-socket ${daemon.socket} http://localhost/${path}`,
        `ls ${daemon.home} || true`,
      ];
      for (const script of tries) {
        const { stdout } = await box.run(["sh", "-c", script]);
        assert.ok(!stdout.text.includes("ALLOWED"), stdout.text);
        assert.equal((await client.approvals.get(approval!.id)).state, "pending", script);
      }
      await client.approvals.deny(approval!.id);
      await run.wait();
      await box.delete();
    });

    it("asks without end, and the person sees a handful", async () => {
      const box = await client.create({ network: { mode: "ask" } });
      const many = `for n in $(seq 100); do curl -sS --max-time 20 http://n$n.example.test/ >/dev/null 2>&1 & done; wait`;
      const run = await box.exec(["sh", "-c", many]);
      const list = () => Array.fromAsync(client.approvals.list({ sandboxId: box.id }));
      await eventually(list, (found) => found.length === 16);
      const query = { follow: false, types: ["approval.limited"], sandboxId: box.id };
      const limited = () => Array.fromAsync(client.events.subscribe(query));
      await eventually(limited, (found) => found.length > 0);
      assert.equal((await list()).length, 16);
      assert.equal((await limited()).length, 1);
      await box.delete();
      await run.wait().catch(() => {});
      assert.deepEqual(await list().catch(() => []), []);
    });
  });
}
