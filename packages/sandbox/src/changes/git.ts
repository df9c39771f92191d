// git on the host, over a repository that may be hostile: it reads, and nothing of the repository runs.
import { spawn } from "node:child_process";
import { dirname } from "node:path";

/** A project and its owner. */
export interface Project {
  projectDir: string;
  uid: number;
  gid: number;
}

/** Settings of the repository that could run a program, switched off. */
const harmless = [
  "--no-replace-objects",
  "--no-pager",
  "--literal-pathspecs",
  ...[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    "log.showSignature=false",
  ].flatMap((setting) => ["-c", setting]),
];

export interface GitOptions {
  input?: Uint8Array;
  /** Reads the settings of whoever has this home, and the machine's. Default: nobody's but the repository's own. */
  home?: string;
}

/** What git prints, at most 4 MiB; undefined if it fails. */
export async function git(
  project: Project,
  args: string[],
  { input, home }: GitOptions = {},
): Promise<Buffer | undefined> {
  const { projectDir: dir, uid, gid } = project;
  const child = spawn("git", [...harmless, ...args], {
    cwd: dir,
    // As the owner, for whom it is their own repository: git refuses anybody else's.
    ...(process.getuid?.() === 0 && { uid, gid }),
    stdio: [input ? "pipe" : "ignore", "pipe", "ignore"],
    env: {
      PATH: "/usr/bin:/bin",
      ...(home
        ? { HOME: home }
        : { HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" }),
      GIT_TERMINAL_PROMPT: "0",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_CEILING_DIRECTORIES: dirname(dir),
    },
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(null));
    child.once("close", resolve);
  });
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of child.stdout as unknown as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > 4 << 20) child.kill("SIGKILL");
    else pieces.push(piece);
  }
  const code = await ended;
  clearTimeout(timer);
  return code === 0 ? Buffer.concat(pieces) : undefined;
}
