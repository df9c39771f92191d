// Starts real daemons for tests, each in a directory of its own, as this user or as an ordinary one.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** Who a daemon runs as. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
  /** A copy of the project that this user can read. */
  root: string;
}

/** The user who runs the tests. */
export function self(): Account {
  return {
    name: process.getuid!() === 0 ? "root" : "user",
    uid: process.getuid!(),
    gid: process.getgid!(),
    root,
  };
}

let ordinary: Account | undefined;

/** An ordinary user, made if need be; the tests' own user where that is not root. */
export function ordinaryUser(): Account {
  if (process.getuid!() !== 0) return self();
  if (ordinary) return ordinary;
  const name = "caisson-test";
  const id = (flag: string) => Number(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout.trim());
  if (spawnSync("id", [name]).status !== 0) {
    const group = spawnSync("getent", ["group", name]).status === 0 ? ["--gid", name] : [];
    const made = spawnSync("useradd", ["--create-home", "--shell", "/bin/bash", ...group, name], {
      encoding: "utf8",
    });
    if (made.status !== 0) throw new Error(`useradd: ${made.stderr}`);
  }
  ordinary = { name, uid: id("-u"), gid: id("-g"), root: readableCopy(id("-u"), id("-g")) };
  return ordinary;
}

/** The accounts that sandbox tests run under: root where we are root, and always an ordinary user. */
export function accounts(): Account[] {
  return process.getuid!() === 0 ? [self(), ordinaryUser()] : [self()];
}

function readableCopy(uid: number, gid: number): string {
  const probe = spawnSync("test", ["-r", join(root, "packages/daemon/src/main.ts")], { uid, gid });
  if (probe.status === 0) return root;
  const copy = mkdtempSync("/tmp/caisson-copy-");
  chmodSync(copy, 0o755);
  process.on("exit", () => rmSync(copy, { recursive: true, force: true }));
  for (const part of ["packages", "node_modules", "package.json", "spec", ".caisson", "test", "caisson"]) {
    const copied = spawnSync("cp", ["-a", join(root, part), copy], { encoding: "utf8" });
    if (copied.status !== 0) throw new Error(`cp: ${copied.stderr}`);
  }
  spawnSync("chmod", ["-R", "go+rX", copy]);
  return copy;
}

export interface TestDaemon extends AsyncDisposable {
  home: string;
  socket: string;
  account: Account;
  env: Record<string, string>;
  child: ChildProcess;
  log(): string;
  /** Kills it at once, as a crash would. */
  crash(): Promise<void>;
  /** Starts it again on the same directory. */
  restart(): Promise<void>;
}

/** A temporary directory that belongs to the account. */
export function temporaryDirectory(account: Account, prefix = "/tmp/caisson-test-"): string {
  const dir = mkdtempSync(prefix);
  chownSync(dir, account.uid, account.gid);
  return dir;
}

/**
 * Where the tests' microVMs have their templates: one place for each account, kept between runs. The image of the host,
 * which takes gigabytes, is the same for all accounts; whoever comes first makes it.
 */
function microvmStore(account: Account): string {
  const base = "/var/tmp/caisson-tests-microvm";
  const store = join(base, String(account.uid));
  if (existsSync(store)) return store;
  mkdirSync(join(base, "images"), { recursive: true });
  chmodSync(join(base, "images"), 0o1777);
  mkdirSync(store, { mode: 0o700 });
  chownSync(store, account.uid, account.gid);
  symlinkSync("../images", join(store, "images"));
  return store;
}

/** Compiled once for all daemons of the tests: most live for a second or two. */
function compileCache(account: Account): string {
  const cache = `/var/tmp/caisson-tests-compiled-${account.uid}`;
  if (!existsSync(cache)) {
    mkdirSync(cache, { mode: 0o700 });
    chownSync(cache, account.uid, account.gid);
  }
  return cache;
}

export async function startDaemon(
  options: { account?: Account; env?: Record<string, string>; home?: string } = {},
): Promise<TestDaemon> {
  const account = options.account ?? self();
  const home = options.home ?? temporaryDirectory(account);
  const env = {
    PATH: process.env.PATH!,
    HOME: account.uid === 0 ? "/root" : `/home/${account.name}`,
    CAISSON_HOME: home,
    CAISSON_LISTEN_TCP: "off",
    // Somebody may be editing while the tests run.
    CAISSON_DAEMON_RENEW: "false",
    CAISSON_CONFIG: join(home, "config.yaml"),
    CAISSON_MICROVM_STORE: microvmStore(account),
    NODE_COMPILE_CACHE: compileCache(account),
    ...options.env,
  };
  const socket = join(home, "run/daemon.sock");
  const start = async () => {
    const child = spawn(
      join(account.root, "node_modules/.bin/node"),
      [join(account.root, "packages/daemon/src/main.ts")],
      {
        env,
        uid: account.uid,
        gid: account.gid,
        cwd: "/",
        detached: true,
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    child.stderr!.on("data", (data) => logged.push(data));
    await untilConnectable(socket, child, () => Buffer.concat(logged).toString());
    return child;
  };
  const logged: Buffer[] = [];
  const gone = (child: ChildProcess) =>
    new Promise<void>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve();
      else child.once("exit", () => resolve());
    });
  const daemon: TestDaemon = {
    home,
    socket,
    account,
    env,
    child: await start(),
    log: () => Buffer.concat(logged).toString(),
    async crash() {
      daemon.child.kill("SIGKILL");
      await gone(daemon.child);
    },
    async restart() {
      daemon.child = await start();
    },
    async [Symbol.asyncDispose]() {
      await endAll(daemon);
      killOrphans(daemon);
      daemon.child.kill("SIGTERM");
      await gone(daemon.child);
      if (!options.home) rmSync(home, { recursive: true, force: true });
    },
  };
  return daemon;
}

/** Ends every sandbox, so that a test leaves nothing behind. */
async function endAll(daemon: TestDaemon): Promise<void> {
  if (daemon.child.exitCode !== null || daemon.child.signalCode !== null) return;
  const { connect: connectClient } = await import("@caisson/client");
  const client = await connectClient({ socket: daemon.socket });
  try {
    for await (const { id } of client.sandboxes.list()) await client.sandboxes.delete(id);
  } finally {
    await client.close();
  }
}

/** A daemon that is gone cannot end its sandboxes; their launch logs name them. */
function killOrphans(daemon: TestDaemon): void {
  if (daemon.child.exitCode === null && daemon.child.signalCode === null) return;
  const sandboxes = join(daemon.home, "sandboxes");
  for (const id of existsSync(sandboxes) ? readdirSync(sandboxes) : []) {
    const log = join(sandboxes, id, "launch.log");
    const pid = existsSync(log) ? /launched (\d+)/.exec(readText(log))?.[1] : undefined;
    if (pid && readlinkOrNothing(`/proc/${pid}/exe`).includes("bwrap")) process.kill(Number(pid), "SIGKILL");
  }
}

function readlinkOrNothing(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

async function untilConnectable(socket: string, child: ChildProcess, log: () => string): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}:\n${log()}`);
    if (existsSync(socket) && (await connects(socket))) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`the daemon does not answer:\n${log()}`);
}

function connects(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Processes of the host whose command line contains `text`. */
export function processesWith(text: string): number[] {
  const listed = spawnSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).stdout.split("\n");
  return listed
    .filter((line) => line.includes(text) && !line.includes("ps -eo"))
    .map((line) => Number(line.trim().split(/\s+/)[0]));
}

export function readText(path: string): string {
  return readFileSync(path, "utf8");
}
