import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { startServer } from "./server.ts";

interface Outcome {
  name: string;
  messages: Record<string, unknown>[] | null;
  code?: string;
  message?: string;
  reason?: string;
}

const root = join(import.meta.dirname, "../../..");

function goVersion(): string | undefined {
  try {
    return execFileSync("go", ["version"], { encoding: "utf8" });
  } catch {
    return undefined;
  }
}

const skip = goVersion() === undefined ? "Go is not installed" : false;

test("containerd's Go library calls us: unary, streams, errors and deadlines", {
  skip,
  timeout: 300_000,
}, async () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-go-"));
  await using server = await startServer();
  try {
    const program = join(dir, "ttrpc");
    const image = join(dir, "image.binpb");
    execFileSync("go", ["build", "-o", program, "."], {
      cwd: join(import.meta.dirname, "go"),
      stdio: "inherit",
    });
    execFileSync(join(root, "node_modules/.bin/buf"), ["build", "-o", image], { cwd: root });
    const { stdout } = await promisify(execFile)(program, [server.socket, image], { timeout: 60_000 });
    const outcomes = new Map((JSON.parse(stdout) as Outcome[]).map((outcome) => [outcome.name, outcome]));

    assert.deepEqual(outcomes.get("unary")?.messages, [{ ready: true, troubles: ["none"] }]);
    const error = outcomes.get("error");
    assert.equal(error?.code, "NotFound");
    assert.equal(error?.reason, "SANDBOX_NOT_FOUND");
    assert.equal(outcomes.get("unknown method")?.code, "Unimplemented");
    const events = outcomes.get("server stream")?.messages as { event: Record<string, unknown> }[];
    assert.deepEqual(
      events.map(({ event }) => Object.keys(event).find((key) => key !== "seq")),
      ["started", "stdout", "stderr", "exit"],
    );
    assert.equal(outcomes.get("error in a stream")?.reason, "SANDBOX_NOT_FOUND");
    const written = outcomes.get("client stream")?.messages?.[0] as { info: { size: string } } | undefined;
    assert.equal(written?.info.size, "5");
    assert.equal(outcomes.get("deadline")?.code, "DeadlineExceeded");
  } finally {
    rmSync(dir, { recursive: true });
  }
});
