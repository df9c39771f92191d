// Traces and metrics as a collector takes them: by the OpenTelemetry collector's own library.
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { connect } from "@caisson/client";
import { rules } from "@caisson/contract";
import { startDaemon } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { Launcher } from "../support/launcher.ts";

interface Span {
  span: string;
  service: string;
  trace_id: string;
  span_id: string;
  parent_id: string;
  kind: string;
  status: string;
  message: string;
  attributes: Record<string, unknown>;
}

interface Point {
  metric: string;
  type: string;
  labels: Record<string, string>;
  value: number;
}

const caller = (trace: string, span: string) => `00-${trace.repeat(32)}-${span.repeat(16)}-01`;

// Most of it is for building the collector where nothing is compiled yet.
describe("telemetry", { timeout: 900_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-collector-"));
  const spans: Span[] = [];
  const points: Point[] = [];
  const refused: string[] = [];
  let collector: ChildProcess;
  let endpoint = "";

  before(async () => {
    const program = join(dir, "collector");
    execFileSync("go", ["build", "-o", program, "."], {
      cwd: join(import.meta.dirname, "collector"),
      stdio: "inherit",
    });
    collector = spawn(program, { stdio: ["ignore", "pipe", "inherit"] });
    createInterface({ input: collector.stdout! }).on("line", (line) => {
      const said = JSON.parse(line);
      if (said.listening) endpoint = said.listening;
      else if (said.refused) refused.push(said.refused);
      else if (said.span) spans.push(said);
      else points.push(said);
    });
    await eventually(
      () => endpoint,
      (address) => address !== "",
    );
  });
  after(() => {
    collector.kill();
    rmSync(dir, { recursive: true });
  });

  it("carries a caller's trace to its spans and into the command, with the keys of the rules", async () => {
    const daemon = await startDaemon({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } });
    let seenInside = "";
    {
      await using stopped = daemon;
      await using client = await connect({ socket: daemon.socket, traceparent: () => caller("a", "b") });
      const box = await client.create({});
      seenInside = (await box.run(["sh", "-c", "echo $TRACEPARENT; exit 3"])).stdout.text.trim();
      await box.files.write("note", "12345");
      await assert.rejects(box.files.read("none"));
      await box.delete();
      // By the launcher, whose shell may belong to a trace as well.
      const launcher = new Launcher(stopped);
      const env = { TRACEPARENT: caller("c", "d") };
      await launcher.run(["run", "--no-workspace", "--", "true"], { env });
      const plain = await launcher.run(["run", "--no-workspace", "--", "sh", "-c", "echo [$TRACEPARENT]"]);
      assert.match(plain.out, /^\[00-[0-9a-f]{32}-[0-9a-f]{16}-01\]\n$/);
      execFileSync("curl", [
        ...["-sf", "--unix-socket", daemon.socket, "-H", `traceparent: ${caller("e", "f")}`],
        ...["-H", "caisson-attempt: 3", "http://localhost/v1/sandboxes"],
      ]);
    }
    // What is not sent yet is sent when the daemon stops.
    const ended = (trace: string) => spans.filter(({ trace_id }) => trace_id === trace.repeat(32));
    await eventually(
      () => ended("e").length,
      (count) => count > 0,
    );
    assert.deepEqual(refused, []);

    const sdk = ended("a");
    assert.ok(sdk.every(({ service, kind }) => service === "caisson" && kind === "Server"));
    assert.ok(sdk.every(({ parent_id }) => parent_id === "b".repeat(16)));
    const created = sdk.find(({ span }) => span === rules.telemetry.spans.create)!;
    assert.equal(created.attributes["sandbox.tier"], "container");
    assert.equal(created.attributes["sandbox.driver"], "bubblewrap");
    const exec = sdk.find(({ span }) => span === rules.telemetry.spans.exec)!;
    assert.equal(seenInside, `00-${"a".repeat(32)}-${exec.span_id}-01`);
    assert.equal(exec.attributes["sandbox.id"], created.attributes["sandbox.id"]);
    assert.equal(exec.attributes["sandbox.process.id"], "p1");
    assert.equal(exec.attributes["sandbox.command.executable"], "sh");
    assert.equal(exec.attributes["sandbox.exit_code"], 3);
    assert.equal(exec.attributes["sandbox.truncated"], false);
    assert.equal(exec.status, "Unset");
    const files = sdk.filter(({ span }) => span === rules.telemetry.spans.file);
    const written = files.find(({ attributes }) => attributes["sandbox.file.path"] === "note")!;
    assert.equal(written.attributes["sandbox.file.size"], 5);
    const failed = files.find(({ attributes }) => attributes["sandbox.file.path"] === "none")!;
    assert.deepEqual([failed.status, failed.message], ["Error", "PATH_NOT_FOUND"]);

    assert.ok(ended("c").some(({ span }) => span === rules.telemetry.spans.exec));
    assert.equal(ended("e")[0]!.attributes["sandbox.retry.attempt"], 3);

    const known: readonly string[] = rules.telemetry.attributes;
    for (const { attributes } of spans) {
      for (const key of Object.keys(attributes)) assert.ok(known.includes(key), key);
      assert.ok(!JSON.stringify(attributes).includes("exit 3"), "arguments of a command are in a span");
    }
  });

  it("sends metrics that are never labelled by what is unbounded", async () => {
    const value = (name: string, labels: Record<string, string>) =>
      points
        .filter(({ metric }) => metric === name)
        .find((point) => Object.entries(labels).every(([key, text]) => point.labels[key] === text))?.value;
    await eventually(
      () => value("caisson_calls_total", { method: "WriteFile", code: "OK" }),
      (count) => count === 1,
    );
    assert.equal(value("caisson_calls_total", { method: "ReadFile", code: "PATH_NOT_FOUND" }), 1);
    assert.equal(value("caisson_call_seconds_count", { method: "WriteFile" }), 1);
    assert.ok(value("caisson_memory_bytes", {})! > 1e6);
    assert.equal(value("caisson_sandboxes", {}), 0);
    const never = new Set<string>(rules.telemetry.never_metric_labels);
    for (const { labels } of points) {
      for (const [key, text] of Object.entries(labels)) {
        assert.ok(!never.has(key), key);
        assert.doesNotMatch(text, /^sb_/);
      }
    }
  });
});
