// Line ends and escapes in everything that a caller or a sandbox can name: none of it writes a line or a header of its own.
import assert from "node:assert/strict";
import { connect as dial } from "node:net";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { startDaemon, type TestDaemon } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { Launcher } from "../../support/launcher.ts";

const forged =
  '\r\n{"at":"2000-01-01T00:00:00.000Z","level":"info","message":"forged"}\r\n\u001b[2J\u001b]0;title\u0007\u202e';

describe("control characters", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let client: Client;
  let port: number;
  before(async () => {
    daemon = await startDaemon({
      env: { CAISSON_LISTEN_TCP: "127.0.0.1:0", CAISSON_LOG_LEVEL: "debug" },
    });
    client = await connect({ socket: daemon.socket });
    const found = await eventually(
      () => /"address":"http:\/\/127\.0\.0\.1:(\d+)/.exec(daemon.log()),
      (match) => match !== null,
    );
    port = Number(found![1]);
  });
  after(async () => {
    await client.close();
    await daemon[Symbol.asyncDispose]();
  });

  it("in arguments, labels, names and variables make no line of the log or of a listing", async () => {
    const settle = (call: Promise<unknown>) => call.catch(() => {});
    await using box = await client.create();
    await settle(client.create({ labels: { team: forged } }));
    await settle(client.create({ labels: { [forged]: "x" } }));
    await settle(client.create({ image: forged }));
    await settle(client.create({ workspace: { dir: `/tmp/${forged}` } }));
    await settle(client.sessions.open(forged, {}));
    await settle(client.keys.create(forged));
    await settle(client.keys.revoke(forged));
    await settle(client.images.remove(forged));
    await box.run(["sh", "-c", "exit 3", forged], { env: { NAME: forged } });
    await settle(box.run([forged]));
    await box.run(["sh", "-c", 'printf "%s" "$1" > "/tmp/$(printf "a\\nb\\033c")"', "sh", forged]);
    const caisson = new Launcher(daemon);
    for (const words of [
      ["ls", "--all"],
      ["ps"],
      ["events"],
      ["keys", "ls"],
      ["files", "ls", box.id, "/tmp"],
    ]) {
      const { code, out, err } = await caisson.run(words);
      assert.equal(code, 0, `${words.join(" ")}: ${err}`);
      assert.doesNotMatch(`${out}${err}`, /^\{"at":"2000/m, words.join(" "));
      // Into a pipe a file's name goes as it is, but for line ends.
      if (words[0] !== "files")
        assert.doesNotMatch(`${out}${err}`, /[\x00-\x08\x0b-\x1f\x7f]/, words.join(" "));
    }
    for (const line of daemon.log().split("\n").filter(Boolean)) {
      assert.notEqual(JSON.parse(line).message, "forged");
    }
  });

  it("in paths, queries and headers make no header of an answer", async () => {
    const injected = "%0d%0aX-Injected:%20yes%0d%0a";
    for (const lines of [
      [`GET /v1/sandboxes/${injected} HTTP/1.1`],
      [`GET /v1/sandboxes?page_token=${injected} HTTP/1.1`],
      [`GET /${injected} HTTP/1.1`],
      ["GET /v1/sandboxes HTTP/1.1", "X-Request-Id: a\u0001b"],
      ["GET /v1/sandboxes HTTP/1.1", "X-Request-Id: a%0d%0aX-Injected: yes"],
      ["GET /v1/sandboxes HTTP/1.1", "Traceparent: 00-a\tX-Injected: yes"],
      ["GET /v1/sandboxes HTTP/1.1", "Authorization: Bearer a\u000bb"],
      ["GET /v1/sandboxes HTTP/1.1", `Origin: http://localhost${injected}`],
    ]) {
      const answer = await say([...lines, `Host: 127.0.0.1:${port}`, "Connection: close"]);
      assert.match(answer, /^HTTP\/1\.1 4\d\d /, lines.join(" | "));
      assert.doesNotMatch(answer, /^X-Injected/im, lines.join(" | "));
    }
  });

  /** What comes back for these header lines. */
  function say(lines: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = dial(port, "127.0.0.1", () => socket.end(`${lines.join("\r\n")}\r\n\r\n`));
      let answer = "";
      socket.on("data", (data) => {
        answer += data.toString("latin1");
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(answer));
    });
  }
});
