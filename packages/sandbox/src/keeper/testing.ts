/** What tests of the keeper and of drivers share: who to run as, where, and what is left behind. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Keeper } from "./keeper.ts";

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** Root where the tests are root, and always an ordinary user. */
export function accounts(): Account[] {
  const self = { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 };
  if (self.uid !== 0) return [{ name: "an ordinary user", ...self }];
  return [
    { name: "root", ...self },
    { name: "an ordinary user", uid: 59_999, gid: 59_999 },
  ];
}

/** The guest binary, in a place that everybody can read. */
function readableGuest(): string {
  const built =
    process.env.CAISSON_GUEST ?? join(import.meta.dirname, "../../../../.caisson/bin/caisson-guest");
  if (!existsSync(built))
    throw new Error(`${built} is missing: run scripts/bootstrap.sh, or set CAISSON_GUEST`);
  const directory = mkdtempSync(join(tmpdir(), "caisson-guest-"));
  chmodSync(directory, 0o755);
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  const copy = join(directory, "caisson-guest");
  copyFileSync(built, copy);
  chmodSync(copy, 0o755);
  return copy;
}

let copiedGuest: string | undefined;

/** A keeper of somebody's, with a directory that is only his. */
export class Bench implements AsyncDisposable {
  readonly guest: string;
  readonly keeper: Keeper;
  readonly dir: string;
  readonly #account: Account;

  constructor(account: Account) {
    this.#account = account;
    copiedGuest ??= readableGuest();
    this.guest = copiedGuest;
    this.keeper = this.newKeeper();
    this.dir = mkdtempSync(join(tmpdir(), "caisson-keeper-test-"));
    this.give(this.dir);
  }

  newKeeper(): Keeper {
    const { uid, gid } = this.#account;
    return new Keeper({ guest: this.guest, ...(uid === process.getuid?.() ? {} : { runAs: { uid, gid } }) });
  }

  /** Makes a path the account's. */
  give(path: string): string {
    chownSync(path, this.#account.uid, this.#account.gid);
    return path;
  }

  /** Does something as the account, in the shell. */
  shell(script: string): string {
    const { uid, gid } = this.#account;
    const done = spawnSync("/bin/sh", ["-euc", script], { uid, gid, cwd: this.dir, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`${script}: ${done.stderr}`);
    return done.stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keeper.removeTree(this.dir).catch(() => {});
    await this.keeper.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Processes on this host whose command line has the mark in it. */
export function processesWith(mark: string): number[] {
  return globSync("/proc/[0-9]*/cmdline").flatMap((file) => {
    const pid = Number(file.split("/")[2]);
    try {
      return pid !== process.pid && readFileSync(file, "utf8").includes(mark) ? [pid] : [];
    } catch {
      return [];
    }
  });
}

/** Waits for something that happens soon; the bound only guards against hanging. */
export async function eventually(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
