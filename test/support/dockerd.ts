// A Docker engine of the tests' own: no registry, no bridge, nothing of the machine's engine.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killIfLiving } from "./kill.ts";

export interface TestEngine extends AsyncDisposable {
  socket: string;
  env: { DOCKER_HOST: string };
  /** Kills the engine as a crash would; its containers' processes may live on. */
  crash(): Promise<void>;
  /** Stops it in order, and with it its containers. */
  stop(): Promise<void>;
  /** Starts it again, on the same data. */
  start(options?: EngineOptions): Promise<void>;
}

/** Whether this machine and user can have one. */
export function canStartDockerd(): boolean {
  return process.getuid!() === 0 && spawnSync("which", ["dockerd"]).status === 0;
}

export interface EngineOptions {
  /** Containers live on while the engine is away. Default: no. */
  liveRestore?: boolean;
}

export async function startDockerd(options: EngineOptions = {}): Promise<TestEngine> {
  const dir = mkdtempSync(join(tmpdir(), "caisson-dockerd-"));
  chmodSync(dir, 0o755);
  const socket = join(dir, "docker.sock");
  const config = join(dir, "daemon.json");
  const args = [
    "--config-file",
    config,
    "--iptables=false",
    "--bridge=none",
    "--data-root",
    join(dir, "data"),
    "--exec-root",
    join(dir, "exec"),
    "--pidfile",
    join(dir, "pid"),
    "-H",
    `unix://${socket}`,
  ];
  let child: ReturnType<typeof spawn>;
  const start = async (how: EngineOptions = options) => {
    writeFileSync(config, JSON.stringify({ "live-restore": how.liveRestore ?? false }));
    // What it writes when its containerd is stuck belongs to it.
    child = spawn("dockerd", args, { stdio: "ignore", env: { ...process.env, TMPDIR: dir } });
    const deadline = performance.now() + 60_000;
    while (!(await answers(socket))) {
      if (child.exitCode !== null) throw new Error(`dockerd ended with ${child.exitCode}`);
      if (performance.now() > deadline) throw new Error("dockerd does not answer");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    // The tests' ordinary user is in no group of the machine's.
    chmodSync(socket, 0o666);
  };
  const ended = () =>
    new Promise((resolve) =>
      child.exitCode === null && child.signalCode === null ? child.once("exit", resolve) : resolve(0),
    );
  await start();
  return {
    socket,
    env: { DOCKER_HOST: `unix://${socket}` },
    start,
    async crash() {
      child.kill("SIGKILL");
      await ended();
      // Its containerd dies with it. Where nobody waits for orphans it stays a zombie, and the next engine, going by
      // this file, would take it for alive.
      rmSync(join(dir, "exec/containerd/containerd.pid"), { force: true });
    },
    async stop() {
      child.kill("SIGTERM");
      await ended();
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended();
      // One that was killed leaves its containerd behind.
      killNamed(join(dir, "exec/containerd/containerd.pid"), "containerd");
      for (const mount of mountsBelow(dir)) spawnSync("umount", ["-l", mount]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Containers of an engine, whatever their state. */
export async function containersOf(socket: string): Promise<string[]> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get({ socketPath: socket, path: "/containers/json?all=1" }, resolve).once("error", reject),
  );
  const found = JSON.parse((await answer.toArray()).join("")) as { Names: string[] }[];
  return found.map(({ Names }) => Names.join(" "));
}

/** Kills the process whose number is in a file, if it still is the one of this name. */
function killNamed(file: string, name: string): void {
  const pid = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  const comm = `/proc/${pid}/comm`;
  if (pid !== "" && existsSync(comm) && readFileSync(comm, "utf8").startsWith(name))
    killIfLiving(Number(pid));
}

export function mountsBelow(dir: string): string[] {
  const { stdout } = spawnSync("findmnt", ["--noheadings", "--output", "TARGET", "--list"], {
    encoding: "utf8",
  });
  return stdout
    .split("\n")
    .filter((path) => path.startsWith(`${dir}/`))
    .reverse();
}

export function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}
