// A project that is built and tested inside, as its developer would outside.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { connect } from "@caisson/client";
import { type Account, type TestDaemon, temporaryDirectory } from "../../support/daemon.ts";

export interface Project {
  /** A command that works where the toolchain is. */
  needs: string;
  files: Record<string, string>;
  /** Run outside first, in the project; `$CACHE` is where the cache is to be. */
  prepare?: string;
  /** The cache that this fills, and where that is inside. */
  cache?: { name: string; place: string };
  argv: string[];
  says: RegExp;
}

const scratch = mkdtempSync(join(tmpdir(), "caisson-prepared-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const prepared = new Map<Project, string>();

/** A project and its cache, made once by whoever runs the tests. */
function prepare(project: Project): string {
  const known = prepared.get(project);
  if (known) return known;
  const dir = mkdtempSync(join(scratch, "p-"));
  for (const [file, content] of Object.entries(project.files)) {
    mkdirSync(dirname(join(dir, "project", file)), { recursive: true });
    writeFileSync(join(dir, "project", file), content);
  }
  mkdirSync(join(dir, "cache"));
  if (project.prepare)
    execFileSync("sh", ["-ec", project.prepare], {
      cwd: join(dir, "project"),
      env: { ...process.env, CACHE: join(dir, "cache") },
      stdio: ["ignore", "ignore", "inherit"],
    });
  prepared.set(project, dir);
  return dir;
}

/** The account's own copy of a project, with its cache filled. */
export async function layOut(project: Project, daemon: TestDaemon): Promise<string> {
  const from = prepare(project);
  const { account } = daemon;
  const dir = temporaryDirectory(account, "caisson-project-");
  cpSync(join(from, "project"), dir, { recursive: true });
  spawnSync("chown", ["-R", `${account.uid}:${account.gid}`, dir]);
  if (project.cache) await fill(daemon, dir, project.cache, join(from, "cache"));
  return dir;
}

/** Brings what was downloaded outside into the project's own cache, as people do: through a sandbox. */
async function fill(
  daemon: TestDaemon,
  dir: string,
  { name, place }: { name: string; place: string },
  from: string,
): Promise<void> {
  await using client = await connect({ socket: daemon.socket });
  await using box = await client.create({ workspace: { dir }, caches: [name] });
  const tar = spawnSync("tar", ["-C", from, "-cf", "-", "."], { maxBuffer: 256 << 20 });
  await box.files.upload(`/home/agent/${place}`, tar.stdout);
}

/** Would the account's own shell run it? */
export function has({ uid, gid }: Account, command: string, env: Record<string, string> = {}): boolean {
  const options = { uid, gid, cwd: "/", env: { ...process.env, ...env } };
  return spawnSync("sh", ["-c", `${command} >/dev/null 2>&1`], options).status === 0;
}
