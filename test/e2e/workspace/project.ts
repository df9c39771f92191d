// A project on the host for tests of workspaces, and what it looks like from outside and from inside.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { type Client, connect } from "@caisson/client";
import { type Account, startDaemon, type TestDaemon, temporaryDirectory } from "../../support/daemon.ts";

/** Everything that apply is to carry over: kinds, modes, link targets and contents, by name. */
export const listing = `
  find . -mindepth 1 \\( -type l -printf 'l %P -> %l\\0' \\) -o -printf '%y %m %P\\0' | LC_ALL=C sort -z | tr '\\0' '\\n'
  find . -type f -perm -u=r -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum -b --
`;

/** The same with owners, inodes and times: has anybody touched anything? */
const everything = `
  find . -printf '%y %m %U:%G %i %n %s %T@ %C@ %P %l\\0' | LC_ALL=C sort -z | tr '\\0' '\\n'
  find . -type f -readable -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum -b --
`;

export interface Project extends Disposable {
  dir: string;
  /** Runs a script on the host, in the project, as its owner. */
  sh(script: string): string;
  /** The same as whoever runs the tests, to see everything. */
  look(script: string): string;
  list(): string;
  listEverything(): string;
  [Symbol.dispose](): void;
}

export function makeProject(account: Account, script = ""): Project {
  const dir = temporaryDirectory(account, "caisson-project-");
  const run = (text: string, who: { uid: number; gid: number }) => {
    const { status, stdout, stderr } = spawnSync("bash", ["-c", text], {
      cwd: dir,
      ...who,
      env: { PATH: process.env.PATH, HOME: "/nonexistent" },
      encoding: "latin1",
      maxBuffer: 256 << 20,
    });
    if (status !== 0) throw new Error(`${text.slice(0, 200)}: ${status}\n${stderr}`);
    return stdout;
  };
  const owner = { uid: account.uid, gid: account.gid };
  const self = { uid: process.getuid!(), gid: process.getgid!() };
  if (script) run(script, owner);
  return {
    dir,
    sh: (text) => run(text, owner),
    look: (text) => run(text, self),
    list: () => run(listing, self),
    listEverything: () => run(everything, self),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** Two listings must be the same; says in which lines they are not. */
export function sameTree(actual: string, expected: string, what: string): void {
  if (actual === expected) return;
  const [now, then] = [actual.split("\n"), expected.split("\n")];
  const lines = [
    ...now.filter((line) => !then.includes(line)).map((line) => `is: ${line}`),
    ...then.filter((line) => !now.includes(line)).map((line) => `was to be: ${line}`),
  ];
  assert.fail(`${what}\n${lines.slice(0, 40).join("\n")}`);
}

export interface Subject extends AsyncDisposable {
  account: Account;
  daemon: TestDaemon;
  client: Client;
}

/** A daemon of the account and a client of it. */
export async function subject(account: Account, env: Record<string, string> = {}): Promise<Subject> {
  const daemon = await startDaemon({ account, env });
  const client = await connect({ socket: daemon.socket });
  return {
    account,
    daemon,
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      await daemon[Symbol.asyncDispose]();
    },
  };
}
