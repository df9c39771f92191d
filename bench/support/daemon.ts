// A daemon of its own for a benchmark, in a directory that vanishes with it.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, connect as connectClient } from "@caisson/client";

export const root = join(import.meta.dirname, "../..");
export const launcher = join(root, "caisson");
/** What the first use of the other one makes, and people put on their PATH. */
export const installed = join(root, ".caisson/bin/caisson");

export interface BenchDaemon {
  home: string;
  socket: string;
  env: Record<string, string>;
  client: Client;
  pid: number;
  /** Milliseconds from its start until it answered. */
  readyMs: number;
  stop(): Promise<void>;
}

/** @param kept a directory that stays when the daemon stops, instead of one that vanishes with it */
export async function startDaemon(env: Record<string, string> = {}, kept?: string): Promise<BenchDaemon> {
  const home = kept ?? mkdtempSync(join(tmpdir(), "caisson-bench-"));
  const socket = join(home, "run/daemon.sock");
  const all = {
    ...(process.env as Record<string, string>),
    CAISSON_HOME: home,
    CAISSON_LISTEN_TCP: "127.0.0.1:0",
    // Somebody may be editing while it is measured.
    CAISSON_DAEMON_RENEW: "false",
    // As the launcher starts it.
    NODE_COMPILE_CACHE: join(home, "cache"),
    ...env,
  };
  const began = performance.now();
  const argv = ["--max-semi-space-size=8", join(root, "packages/daemon/src/main.ts")];
  const child = spawn(process.execPath, argv, {
    env: all,
    stdio: ["ignore", "ignore", "inherit"],
  });
  await untilConnects(socket, child);
  const readyMs = performance.now() - began;
  const client = await connectClient({ socket });
  return {
    home,
    socket,
    env: all,
    client,
    pid: child.pid!,
    readyMs,
    async stop() {
      for await (const { id } of client.sandboxes.list()) await client.sandboxes.delete(id).catch(() => {});
      await client.close();
      child.kill("SIGTERM");
      await new Promise((resolve) => child.once("exit", resolve));
      if (!kept) rmSync(home, { recursive: true, force: true });
    },
  };
}

async function untilConnects(path: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 20_000; tries++) {
    if (child.exitCode !== null) throw new Error("the daemon ended");
    const connected = await new Promise<boolean>((resolve) => {
      const socket = connect(path);
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
    if (connected) return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  throw new Error("the daemon does not answer");
}

/** A process's resident memory in megabytes. */
export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}
