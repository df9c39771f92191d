// The systems we compare with, each run as its own users run it.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { progress } from "./report.ts";

/** Where peers from npm are installed; not part of the project. */
const peersDir = join(import.meta.dirname, "../.peers");

/** A peer's command line for `true`, or why there is none. */
export type Peer = { argv: string[]; env?: Record<string, string> } | { missing: string };

/** bubblewrap with namespaces and system directories, none of our mechanisms. */
export function plainBubblewrap(command: string[]): string[] {
  const links = ["/bin", "/lib", "/lib32", "/lib64", "/sbin"].filter((path) => existsSync(path));
  return [
    "bwrap",
    "--unshare-all",
    "--ro-bind",
    "/usr",
    "/usr",
    ...links.flatMap((path) => ["--symlink", `usr${path}`, path]),
    "--ro-bind",
    "/etc",
    "/etc",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    ...command,
  ];
}

function installed(name: string, version: string, bin: string): string | undefined {
  const path = join(peersDir, "node_modules/.bin", bin);
  if (existsSync(path)) return path;
  mkdirSync(peersDir, { recursive: true });
  if (!existsSync(join(peersDir, "package.json")))
    writeFileSync(join(peersDir, "package.json"), '{"private":true}');
  progress(`installing ${name} to compare with …`);
  spawnSync("npm", ["install", "--no-audit", "--no-fund", "--save-exact", `${name}@${version}`], {
    cwd: peersDir,
  });
  return existsSync(path) ? path : undefined;
}

export function codexSandbox(command: string[]): Peer {
  const codex = installed("@openai/codex", "latest", "codex");
  if (!codex) return { missing: "@openai/codex could not be installed from npm" };
  return works({
    argv: [codex, "sandbox", "--", ...command],
    env: { CODEX_HOME: join(peersDir, "codex-home") },
  });
}

export function srt(command: string[]): Peer {
  const path = installed("@anthropic-ai/sandbox-runtime", "latest", "srt");
  if (!path) return { missing: "@anthropic-ai/sandbox-runtime could not be installed from npm" };
  return works({ argv: [path, ...command] });
}

function works(peer: { argv: string[]; env?: Record<string, string> }): Peer {
  mkdirSync(join(peersDir, "codex-home"), { recursive: true });
  const tried = spawnSync(peer.argv[0]!, peer.argv.slice(1), {
    env: { ...process.env, ...peer.env },
    encoding: "utf8",
    timeout: 60_000,
  });
  if (tried.status === 0) return peer;
  return { missing: `it does not run here: ${(tried.stderr || String(tried.error)).trim().split("\n")[0]}` };
}

/** A container engine that answers, and an image to run. */
export function docker(): { image: string } | { missing: string } {
  if (spawnSync("docker", ["info"], { timeout: 20_000 }).status !== 0)
    return { missing: "no Docker engine is running" };
  const image = "caisson-bench";
  if (spawnSync("docker", ["image", "inspect", image]).status !== 0) {
    const made = spawnSync("sh", [
      "-c",
      `tar -C / -c bin lib lib64 usr/bin/true usr/lib/x86_64-linux-gnu | docker import - ${image}`,
    ]);
    if (made.status !== 0) return { missing: "no image could be made" };
  }
  return { image };
}
