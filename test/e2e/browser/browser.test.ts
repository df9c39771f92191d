// The SDK in a real browser, against a real daemon, with a key and from an allowed origin.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { connect } from "@caisson/client";
import { startDaemon } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { startSite } from "./site.ts";

/** What the page does; `URL` and `KEY` are filled in. */
const work = `
import { connect } from "@caisson/client";
const seen = {};
const caisson = await connect({ url: "URL", key: "KEY" });
const box = await caisson.create({ labels: { by: "browser" } });
seen.run = (await box.run(["sh", "-c", "echo out; echo err >&2; exit 3"]));
seen.run = [seen.run.code, seen.run.stdout.text, seen.run.stderr.text];
const run = await box.exec(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.1; done"]);
let pieces = 0;
let streamed = "";
for await (const event of run.output()) { pieces++; streamed += new TextDecoder().decode(event.bytes); }
seen.streamed = streamed;
seen.pieces = pieces;
seen.exit = (await run.exit).code;
const typed = await box.exec(["cat"], { openStdin: true });
await typed.stdin.end("typed in a browser");
seen.typed = (await typed.result()).stdout.text;
const bytes = crypto.getRandomValues(new Uint8Array(60000));
await box.files.write("/tmp/mine/file", bytes, { parents: true });
const back = (await box.files.read("/tmp/mine/file")).bytes;
seen.file = back.length === bytes.length && back.every((byte, index) => byte === bytes[index]);
seen.names = (await box.files.list("/tmp/mine")).map(({ path }) => path);
const types = [];
for await (const event of caisson.events.subscribe({ follow: false, sandboxId: box.id })) types.push(event.type);
seen.types = types.slice(0, 2);
seen.refused = await box.files.read("/none").catch((error) => [error.code, error.nextStep !== ""]);
await box.delete();
await fetch("/report", { method: "POST", body: JSON.stringify(seen) });
`;

describe("a browser", { timeout: 120_000 }, () => {
  for (const allowed of [true, false]) {
    it(
      allowed ? "uses the SDK as a program does" : "of a page that is not allowed gets nothing",
      async () => {
        await using site = await startSite();
        await using daemon = await startDaemon({
          env: {
            CAISSON_LISTEN_TCP: "127.0.0.1:0",
            CAISSON_LISTEN_ALLOWED_ORIGINS: allowed ? site.origin : "http://another.example",
          },
        });
        const found = await eventually(
          () => /"address":"(http:[^"]+)"/.exec(daemon.log()),
          (match) => match !== null,
        );
        await using client = await connect({ socket: daemon.socket });
        const { secret } = await client.keys.create("browser", { scopes: ["read", "write"] });
        site.serve(work.replace("URL", found![1]!).replace("KEY", secret));
        const report = JSON.parse(await visit(site.origin, site.report));
        if (!allowed) {
          assert.match(report.error, /UNAVAILABLE|fetch|connection/i);
          assert.deepEqual(await Array.fromAsync(client.sandboxes.list({ all: true })), []);
          return;
        }
        assert.equal(report.error, undefined);
        const { pieces, ...rest } = report;
        assert.ok(pieces >= 2, "output arrives while the command runs");
        assert.deepEqual(rest, {
          run: [3, "out\n", "err\n"],
          streamed: "1\n2\n3\n",
          exit: 0,
          typed: "typed in a browser",
          file: true,
          names: ["file"],
          types: ["sandbox.starting", "sandbox.ready"],
          refused: ["PATH_NOT_FOUND", true],
        });
      },
    );
  }
});

/** Opens a page and waits for its report. */
async function visit(origin: string, report: Promise<string>): Promise<string> {
  const profile = mkdtempSync(join(tmpdir(), "caisson-browser-"));
  const child = spawn(
    "chromium",
    [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--no-first-run",
      `--user-data-dir=${profile}`,
      "--remote-debugging-port=0",
      `${origin}/`,
    ],
    { stdio: ["ignore", "ignore", "pipe"], detached: true, env: { PATH: process.env.PATH!, HOME: profile } },
  );
  let words = "";
  child.stderr.on("data", (data) => {
    words += data;
  });
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Error(`the page reported nothing:\n${words.slice(-2000)}`)),
    60_000,
  );
  try {
    return await Promise.race([report, late]);
  } finally {
    clearTimeout(timer);
    process.kill(-child.pid!, "SIGKILL");
    await new Promise((resolve) => child.once("close", resolve));
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}
