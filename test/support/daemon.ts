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
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { connect } from "node:net";
import { homedir, tmpdir, userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { controlGroupsOf, removeControlGroupsOf } from "./control-groups.ts";
import { within } from "./dose.ts";
import { killIfLiving } from "./kill.ts";
import { removeTree } from "./remove-tree.ts";

export const root = join(import.meta.dirname, "../..");

/** Who a daemon runs as. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
  home: string;
  /** A copy of the project that this user can read. */
  root: string;
}

/** The user who runs the tests. */
export function self(): Account {
  return {
    name: userInfo().username,
    uid: process.getuid!(),
    gid: process.getgid!(),
    home: homedir(),
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
  const [uid, gid] = [id("-u"), id("-g")];
  ordinary = { name, uid, gid, home: `/home/${name}`, root: readableCopy(uid, gid) };
  return ordinary;
}

/** The accounts that sandbox tests run under: root where we are root, and always an ordinary user. */
export function accounts(): Account[] {
  return process.getuid!() === 0 ? [self(), ordinaryUser()] : [self()];
}

function readableCopy(uid: number, gid: number): string {
  // A whole run makes one copy for all its files.
  if (process.env.CAISSON_TEST_ROOT) return process.env.CAISSON_TEST_ROOT;
  const probe = spawnSync("test", ["-r", join(root, "packages/daemon/src/main.ts")], { uid, gid });
  if (probe.status === 0) return root;
  const copy = mkdtempSync(join(tmpdir(), "caisson-copy-"));
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

/** A temporary directory that belongs to the account. What a test leaves of it is removed when its file has ended. */
export function temporaryDirectory(account: Account, prefix = "caisson-test-"): string {
  const dir = mkdtempSync(resolve(tmpdir(), prefix));
  chownSync(dir, account.uid, account.gid);
  if (temporary.size === 0)
    process.on("exit", () => {
      for (const path of temporary) removeTree(path);
    });
  temporary.add(dir);
  return dir;
}

const temporary = new Set<string>();

/**
 * Where the tests' microVMs have their templates: one place for each account, kept between runs. The image of the host,
 * which takes gigabytes, is the same for all accounts; whoever comes first makes it.
 */
export function microvmStore(account: Account): string {
  // Root's is for its ordinary user, too; anybody else has his own. Another place lets checkouts of different builds be tested at
  // the same time.
  const runner = process.getuid!();
  const usual = `/var/tmp/caisson-tests-microvm${runner === 0 ? "" : `-${runner}`}`;
  const base = process.env.CAISSON_TEST_MICROVM ?? usual;
  mkdirSync(base, { recursive: true });
  makeOnce(join(base, "images"), (dir) => chmodSync(dir, 0o1777));
  return makeOnce(join(base, String(account.uid)), (dir) => {
    chownSync(dir, account.uid, account.gid);
    symlinkSync("../images", join(dir, "images"));
  });
}

/** Compiled once for all daemons of a run: most live for a second or two. */
function compileCache(account: Account): string {
  const base = process.env.CAISSON_TEST_SHARED ?? "/var/tmp";
  return makeOnce(join(base, `caisson-tests-compiled-${account.uid}`), (dir) =>
    chownSync(dir, account.uid, account.gid),
  );
}

/** A directory that is made and prepared by whoever comes first; others may come at the same time. */
function makeOnce(path: string, prepare: (dir: string) => void): string {
  if (existsSync(path)) return path;
  const made = mkdtempSync(join(dirname(path), ".making-"));
  prepare(made);
  try {
    renameSync(made, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
    rmSync(made, { recursive: true });
  }
  return path;
}

export async function startDaemon(
  options: { account?: Account; env?: Record<string, string>; home?: string } = {},
): Promise<TestDaemon> {
  const account = options.account ?? self();
  const home = options.home ?? temporaryDirectory(account);
  const env = {
    PATH: process.env.PATH!,
    HOME: account.home,
    CAISSON_HOME: home,
    CAISSON_LISTEN_TCP: "off",
    // Somebody may be editing while the tests run.
    CAISSON_DAEMON_RENEW: "false",
    CAISSON_CONFIG: join(home, "config.yaml"),
    CAISSON_MICROVM_STORE: microvmStore(account),
    NODE_COMPILE_CACHE: compileCache(account),
    TMPDIR: tmpdir(),
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
      const crashed = daemon.child.exitCode !== null || daemon.child.signalCode !== null;
      if (crashed) {
        killOrphans(daemon);
        await removeControlGroupsOf(home);
      } else {
        await endAll(daemon);
        daemon.child.kill("SIGTERM");
        await gone(daemon.child);
        const left = controlGroupsOf(home);
        if (left.length > 0) throw new Error(`the daemon left ${left.join(", ")} behind`);
      }
      if (!options.home) removeTree(home);
    },
  };
  return daemon;
}

/** Ends every sandbox, so that a test leaves nothing behind. */
async function endAll(daemon: TestDaemon): Promise<void> {
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
  const sandboxes = join(daemon.home, "sandboxes");
  for (const id of existsSync(sandboxes) ? readdirSync(sandboxes) : []) {
    const log = join(sandboxes, id, "launch.log");
    const pid = existsSync(log) ? /launched (\d+)/.exec(readText(log))?.[1] : undefined;
    if (pid && readlinkOrNothing(`/proc/${pid}/exe`).includes("bwrap")) killIfLiving(Number(pid));
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
  const deadline = performance.now() + within(30_000);
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
