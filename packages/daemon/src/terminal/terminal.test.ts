import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { FakeDaemon } from "@caisson/client/testing";
import type { CallContext } from "@caisson/contract";
import {
  type InvokeRequest,
  InvokeRequestSchema,
  type InvokeResponseSchema,
} from "@caisson/contract/terminal";
import { Renewal } from "../renewal/renewal.ts";
import type { Sources } from "../renewal/sources.ts";
import { daemonControl } from "./control.ts";
import { openTerminal } from "./index.ts";
import { Inlet } from "./inlet.ts";

type Input = NonNullable<MessageInitShape<typeof InvokeRequestSchema>["input"]>;
type Output = NonNullable<MessageInitShape<typeof InvokeResponseSchema>["output"]>;

/** A launcher in memory. */
class Launcher {
  readonly heard: Output[] = [];
  readonly done: Promise<void>;
  /** Stop taking what is said, as a launcher whose output nobody reads. */
  slow = false;
  readonly #said: Input[] = [];
  readonly #gone = new AbortController();
  #wake = () => {};

  constructor(
    invoke: (requests: AsyncIterable<InvokeRequest>, call: CallContext) => AsyncIterable<{ output?: Output }>,
  ) {
    const call = { actor: "uid:0", requestId: "r", signal: this.#gone.signal };
    this.done = this.#hear(invoke(this.#requests(), call));
  }

  say(...inputs: Input[]): this {
    this.#said.push(...inputs);
    this.#wake();
    return this;
  }

  vanish(): void {
    this.#gone.abort();
    this.#wake();
  }

  text(stream: "stdout" | "stderr"): string {
    return Buffer.concat(
      this.heard.flatMap(({ case: name, value }) => (name === stream ? [value as Uint8Array] : [])),
    ).toString();
  }

  last(): Output | undefined {
    return this.heard.at(-1);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  }

  async #hear(outputs: AsyncIterable<{ output?: Output }>): Promise<void> {
    for await (const { output } of outputs) {
      this.heard.push(output!);
      while (this.slow) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async *#requests(): AsyncGenerator<InvokeRequest> {
    for (;;) {
      const input = this.#said.shift();
      if (input) yield create(InvokeRequestSchema, { input });
      else if (this.#gone.signal.aborted) throw new Error("gone");
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

function open(...args: string[]): Input {
  const env = { HOME: Buffer.from("/home/user") };
  const value = { args: args.map((arg) => Buffer.from(arg)), cwd: Buffer.from("/srv"), env, build: "b1" };
  return { case: "open", value } as Input;
}

function setUp() {
  const daemon = new FakeDaemon();
  let stops = 0;
  const home = mkdtempSync(join(tmpdir(), "caisson-terminal-"));
  const control = {
    ...daemonControl({ home, socket: "s", version: "1", build: "b1", listening: [] }),
    stop: () => void stops++,
  };
  let old = false;
  const sources = {
    changed: async () => old,
    knownToHaveChanged: false,
    touches: 0,
    onTouched: () => {},
  } as unknown as Sources;
  const renewal = new Renewal({ sources, enabled: true, renew: () => {}, rehearse: async () => undefined });
  const terminal = openTerminal(control, "b1", renewal);
  terminal.serve(daemon.services());
  const invoke = terminal.service.impl.invoke as unknown as ConstructorParameters<typeof Launcher>[0];
  return {
    daemon,
    home,
    launch: (...inputs: Input[]) => new Launcher(invoke).say(...inputs),
    stops: () => stops,
    grow: () => {
      old = true;
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true }),
  };
}

test("a command line is run and its exit code is the last word", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("run", "--", "echo", "hello"));
  await launcher.done;
  assert.equal(launcher.text("stdout"), "hello\n");
  assert.deepEqual(launcher.last(), { case: "exit", value: 0 });
  const wrong = setup.launch(open("rnu"));
  await wrong.done;
  assert.match(wrong.text("stderr"), /did you mean run/);
  assert.deepEqual(wrong.last(), { case: "exit", value: 2 });
});

test("signals are heard while input streams in", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("run", "--", "wait"));
  await launcher.until(() => launcher.heard.some(({ case: name }) => name === "wantStdin"));
  for (let i = 0; i < 40; i++) launcher.say({ case: "stdin", value: new Uint8Array(64 * 1024) });
  await launcher.until(() => setup.daemon.calls.some(({ method }) => method === "writeStdin"));
  launcher.say({ case: "signal", value: 15 });
  await launcher.done;
  assert.deepEqual(launcher.last(), { case: "exit", value: 143 });
});

test("input that nobody takes is stopped, and goes on when somebody does", async () => {
  const told: string[] = [];
  const inlet = new Inlet({
    high: 10,
    low: 4,
    full: () => void told.push("full"),
    room: () => void told.push("room"),
  });
  for (let piece = 0; piece < 5; piece++) inlet.push(new Uint8Array(3));
  inlet.end();
  assert.deepEqual(told, ["full"]);
  let bytes = 0;
  for await (const piece of inlet) bytes += piece.length;
  assert.deepEqual([bytes, told], [15, ["full", "room"]]);
});

test("bytes pass through exactly, in both directions", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("run", "--", "cat"));
  const sent = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  launcher.say({ case: "stdin", value: sent }, { case: "stdinEnd", value: true });
  await launcher.done;
  assert.deepEqual(
    Buffer.concat(launcher.heard.flatMap((out) => (out.case === "stdout" ? [out.value!] : []))),
    sent,
  );
});

test("a launcher that does not read holds the command line, not memory", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("run", "--", "cat"));
  await launcher.until(() => launcher.heard.length > 0);
  launcher.slow = true;
  let sent = 0;
  for (; sent < 64; sent++) launcher.say({ case: "stdin", value: new Uint8Array(64 * 1024).fill(sent) });
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(launcher.text("stdout").length < 4 * 64 * 1024);
  launcher.slow = false;
  launcher.say({ case: "stdinEnd", value: true });
  await launcher.done;
  assert.equal(launcher.text("stdout").length > 0, true);
  assert.equal(
    launcher.heard.reduce((sum, out) => sum + (out.case === "stdout" ? out.value!.length : 0), 0),
    64 * 64 * 1024,
  );
});

test("what a vanished launcher started ends", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("run", "--", "wait"));
  await launcher.until(() => launcher.text("stdout") === "ready\n");
  launcher.vanish();
  const [process] = [...setup.daemon.processes.values()].flat();
  await launcher.until(() => process!.running === false);
  assert.deepEqual(process!.signals, ["SIGTERM"]);
});

test("a signal that nobody listens to ends the command line", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("files", "write", "none", "/f"), { case: "signal", value: 2 });
  await launcher.done;
  assert.equal(launcher.last()?.case, "exit");
});

test("variables and files are asked of the launcher", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("run", "-e", "TOKEN", "--env-file", "vars", "--", "env"));
  const asked = (name: string) =>
    launcher.heard.find((out) => out.case === name)?.value as { id: number } | undefined;
  await launcher.until(() => asked("readFile") !== undefined);
  launcher.say({ case: "file", value: { id: asked("readFile")!.id, data: Buffer.from("A=1\n") } } as Input);
  launcher.say({ case: "file", value: { id: asked("readFile")!.id, end: true } } as Input);
  await launcher.until(() => asked("env") !== undefined);
  launcher.say({
    case: "file",
    value: { id: asked("env")!.id, data: Buffer.from("TOKEN=x=y"), end: true },
  } as Input);
  await launcher.done;
  assert.deepEqual(launcher.text("stdout").trim().split("\n").sort(), ["A=1", "TOKEN=x=y"]);
  const missing = setup.launch(open("run", "--env-file", "none", "--", "env"));
  await missing.until(() => missing.heard.some((out) => out.case === "readFile"));
  missing.say({ case: "file", value: { id: 1, end: true, errno: 2 } } as Input);
  await missing.done;
  assert.match(missing.text("stderr"), /cannot read none: no such file or directory/);
});

test("a launcher of another build is told to start its own daemon, and this one stops", async () => {
  using setup = setUp();
  const other = open("ls") as { value: { build: string } };
  other.value.build = "b2";
  const launcher = setup.launch(other as unknown as Input);
  await launcher.done;
  assert.deepEqual(launcher.heard, [{ case: "restart", value: true }]);
  await launcher.until(() => setup.stops() === 1);
});

test("a daemon that is older than its sources is replaced, but not while others wait for it", async () => {
  using setup = setUp();
  const waiting = setup.launch(open("run", "--", "wait"));
  await waiting.until(() => waiting.heard.some(({ case: name }) => name === "wantStdin"));
  setup.grow();
  const served = open("version") as unknown as { value: { stderrIsTerminal: boolean } };
  served.value.stderrIsTerminal = true;
  const second = setup.launch(served as unknown as Input);
  await second.done;
  assert.deepEqual(second.last(), { case: "exit", value: 0 });
  assert.match(second.text("stderr"), /an older daemon is busy/);
  waiting.vanish();
  await waiting.done.catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  const third = setup.launch(open("version"));
  await third.done;
  assert.deepEqual(third.heard, [{ case: "restart", value: true }]);
});

test("daemon stop answers first", async () => {
  using setup = setUp();
  const launcher = setup.launch(open("daemon", "stop"));
  await launcher.until(() => launcher.heard.length === 2);
  assert.deepEqual(launcher.last(), { case: "exit", value: 0 });
  await launcher.until(() => setup.stops() === 1);
});

test("the daemon's log is shown from its last lines on", async () => {
  using setup = setUp();
  writeFileSync(
    join(setup.home, "daemon.log"),
    Array.from({ length: 50_000 }, (_, line) => `line ${line}\n`).join(""),
  );
  const launcher = setup.launch(open("daemon", "logs", "-n", "2"));
  await launcher.done;
  assert.equal(launcher.text("stdout"), "line 49998\nline 49999\n");
});

test("arguments that are not UTF-8 are refused with a word", async () => {
  using setup = setUp();
  const bad = {
    case: "open",
    value: { args: [Buffer.from([0xff])], cwd: Buffer.from("/") },
  } as unknown as Input;
  const launcher = setup.launch(bad);
  await launcher.done;
  assert.match(launcher.text("stderr"), /argument 1 is not UTF-8/);
  assert.deepEqual(launcher.last(), { case: "exit", value: 125 });
});
