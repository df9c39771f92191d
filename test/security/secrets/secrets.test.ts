// Credentials that never enter: canaries are looked for everywhere that a sandbox or a reader of the daemon can look.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Box } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { canaries, names, openWorld, type World } from "./world.ts";

for (const account of accounts()) {
  describe(`secrets, as ${account.name}`, { timeout: 180_000 }, () => {
    let world: World;
    let box: Box;
    before(async () => {
      world = await openWorld(account);
      await world.client.secrets.set("STORED_TOKEN", {
        hosts: [`${names.own}:${world.own.port}`],
        value: canaries.stored,
      });
      box = await world.client.create({
        network: world.network,
        secrets: ["API_TOKEN", "FILE_TOKEN", "COMMAND_TOKEN", "STORED_TOKEN"],
      });
    });
    after(() => world?.[Symbol.asyncDispose]());

    const sh = async (script: string) => {
      const result = await box.run(["sh", "-c", script]);
      return { code: result.code, text: result.stdout.text + result.stderr.text };
    };
    const lastHeard = () => world.own.heard.at(-1)!;

    it("a sandbox sees placeholders, each of its own", async () => {
      const { text } = await sh(
        "env; cat /proc/self/environ | tr '\\0' '\\n'; cat /proc/1/environ 2>/dev/null",
      );
      for (const canary of Object.values(canaries)) assert.ok(!text.includes(canary));
      assert.match(text, /API_TOKEN=ghp_[A-Za-z0-9]{40}\n/);
      assert.match(text, /STORED_TOKEN=csp_[A-Za-z0-9]{40}\n/);
      const second = await world.client.create({ network: world.network, secrets: ["API_TOKEN"] });
      const other = (await second.run(["sh", "-c", "echo $API_TOKEN"])).stdout.text;
      assert.ok(!text.includes(other.trim()), "another sandbox has another placeholder");
      await second.delete();
    });

    it("values from a variable, a file, a command and the store reach their host", async () => {
      const { code, text } = await sh(
        `curl -sS ${world.url}/ -H "Authorization: Bearer $API_TOKEN" -H "X-File: $FILE_TOKEN" -H "X-Command: $COMMAND_TOKEN" -H "X-Stored: $STORED_TOKEN"`,
      );
      assert.equal(code, 0, text);
      const { headers } = lastHeard();
      assert.equal(headers.authorization, `Bearer ${canaries.env}`);
      assert.deepEqual(
        [headers["x-file"], headers["x-command"], headers["x-stored"]],
        [canaries.file, canaries.command, canaries.stored],
      );
      for (const canary of Object.values(canaries)) assert.ok(!text.includes(canary), "the echo is masked");
    });

    it("without a proxy, by names alone, the same holds", async () => {
      const { code, text } = await sh(
        `env -u HTTPS_PROXY -u https_proxy -u ALL_PROXY -u all_proxy curl -sS --noproxy '*' ${world.url}/ -u "user:$API_TOKEN"`,
      );
      assert.equal(code, 0, text);
      const basic = Buffer.from(`user:${canaries.env}`).toString("base64");
      assert.equal(lastHeard().headers.authorization, `Basic ${basic}`);
      assert.ok(!text.includes(basic));
    });

    it("a body is filled in only where that is configured", async () => {
      await sh(`curl -sS ${world.url}/ -d "a=$FILE_TOKEN&b=$API_TOKEN"`);
      const form = new URLSearchParams(lastHeard().body);
      assert.equal(form.get("a"), canaries.file);
      assert.match(form.get("b")!, /^ghp_/);
      assert.notEqual(form.get("b"), canaries.env);
    });

    it("another host gets neither value nor placeholder that can be read", async () => {
      const { text } = await sh(`curl -sSk ${world.otherUrl}/ -H "Authorization: Bearer $API_TOKEN"`);
      const heard = JSON.stringify(world.other.heard) + text;
      for (const canary of Object.values(canaries)) assert.ok(!heard.includes(canary));
    });

    it("over plain HTTP neither leaves, by proxy or without, and that is told", async () => {
      const heard: string[] = [];
      const server = createServer((request, response) => {
        heard.push(JSON.stringify(request.rawHeaders));
        response.end();
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      const rules = [`${names.other}:${port}`, `127.0.0.1:${port}`];
      await world.caisson.run(["net", "set", box.id, ...rules.flatMap((rule) => ["--allow", rule])]);
      const call = `curl -sS http://${names.other}:${port}/ -H "X-Key: $API_TOKEN" -u "user:$FILE_TOKEN"`;
      await sh(call);
      await sh(`${call} --noproxy '*'`);
      server.close();
      assert.equal(heard.length, 2);
      const placeholders = (await sh("echo $API_TOKEN $FILE_TOKEN; printf user:$FILE_TOKEN | base64 -w0"))
        .text;
      for (const word of placeholders.split(/\s+/).filter(Boolean)) assert.ok(!heard.join().includes(word));
      const events = await Array.fromAsync(
        world.client.events.subscribe({ follow: false, types: ["secret.stripped"], sandboxId: box.id }),
      );
      assert.ok(events.some(({ data }) => data.secret === "API_TOKEN" && data.name === names.other));
    });

    it("neither Host nor server name of another host gets a value", async () => {
      const before = world.own.heard.length;
      const port = world.own.port;
      const tries = [
        `curl -sSk --connect-to ${names.other}:${port}:${names.own}:${port} https://${names.other}:${port}/ -H "Authorization: $API_TOKEN"`,
        `curl -sS ${world.url}/ -H "Host: ${names.other}" -H "Authorization: $API_TOKEN"`,
        `printf 'GET / HTTP/1.1\\r\\nHost: ${names.own}:${port}\\r\\nHost: evil.test\\r\\nX: %s\\r\\n\\r\\n' "$API_TOKEN" | timeout 5 openssl s_client -quiet -proxy "\${HTTPS_PROXY#http://}" -connect ${names.own}:${port} -servername ${names.own}`,
      ];
      for (const script of tries) await sh(script);
      for (const { headers } of world.own.heard.slice(before)) {
        assert.equal(headers.host, `${names.own}:${port}`);
        assert.ok(!JSON.stringify(headers).includes(canaries.env), JSON.stringify(headers));
      }
    });

    it("no value is in arguments, logs, events, records, errors or the sandbox's files", async () => {
      const { stdout } = await box.run([
        "sh",
        "-c",
        "cat /proc/*/cmdline 2>/dev/null; grep -rlI -e CanaryFrom -e canary- /home /tmp /run /etc /dev/shm 2>/dev/null; true",
      ]);
      const events: string[] = [];
      for await (const event of world.client.events.subscribe({ follow: false }))
        events.push(JSON.stringify(event.data));
      const snapshot = await world.client.snapshots.take(box.id);
      const pieces = await Array.fromAsync(world.client.snapshots.export(snapshot.id));
      const told = [
        stdout.text,
        Buffer.concat(pieces).toString("latin1"),
        ...events,
        world.daemon.log(),
        execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }),
        (await world.caisson.run(["secret", "ls", "--json"])).out,
        (await world.caisson.run(["config", "show"])).out,
        (await world.caisson.run(["ls", "--json", "--all"])).out,
        execFileSync("strings", ["-a", join(world.daemon.home, "log.db")], {
          encoding: "utf8",
          maxBuffer: 1 << 28,
        }),
      ].join("\n");
      for (const canary of Object.values(canaries)) {
        if (canary === canaries.command) continue;
        assert.ok(!told.includes(canary), canary);
      }
      assert.ok(
        events.some((data) => data.includes("API_TOKEN")),
        "its use is in the log by name",
      );
    });

    it("what is stored is the owner's alone", () => {
      const path = join(world.daemon.home, "secrets.json");
      assert.equal(statSync(path).mode & 0o777, 0o600);
      assert.ok(readFileSync(path, "utf8").includes(canaries.stored));
    });

    it("a secret goes on after the daemon has died, and stops when it is removed", async () => {
      await world.daemon.crash();
      await world.daemon.restart();
      const call = `curl -sS ${world.url}/ -H "X-Stored: $STORED_TOKEN" -H "X-Api: $API_TOKEN"`;
      assert.equal((await sh(call)).code, 0);
      assert.equal(lastHeard().headers["x-stored"], canaries.stored);
      await world.client.secrets.remove("STORED_TOKEN");
      await sh(call);
      assert.equal(lastHeard().headers["x-stored"], "");
      assert.equal(lastHeard().headers["x-api"], canaries.env);
    });

    it("a secret that is not there, or cannot be read, is an error before anything starts", async () => {
      await assert.rejects(world.client.create({ secrets: ["NOBODY"] }), { code: "SECRET_NOT_FOUND" });
      await world.client.secrets.set("GONE", { hosts: ["a.test"], file: "/nonexistent/file" });
      await assert.rejects(world.client.create({ secrets: ["GONE"] }), { code: "SECRET_UNAVAILABLE" });
    });
  });
}
