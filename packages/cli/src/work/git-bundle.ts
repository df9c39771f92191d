// A repository of this machine as one file. The repository may be hostile: git only reads it, and nothing of it runs.
import { spawn } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "@caisson/client";
import { packOne } from "../tar/pack.ts";
import { resolve } from "./spec-options.ts";

/** The path of something on this machine; undefined for an address. */
export function localSource(url: string, cwd: string): string | undefined {
  if (url.startsWith("file://")) return decodeURIComponent(new URL(url).pathname);
  if (/^[a-z][a-z0-9+.-]*:/i.test(url) || /^[^/]+:/.test(url)) return undefined;
  return resolve(cwd, url);
}

export interface Bundle extends AsyncDisposable {
  /** As a tar stream with one member of this name. */
  archive(name: string): AsyncIterable<Uint8Array>;
}

/** A bundle of all branches and tags; a file is taken for one already. */
export async function bundleOf(path: string): Promise<Bundle> {
  const stats = await stat(path).catch(() => {
    throw new CaissonError("PATH_NOT_FOUND", "there is no such repository or bundle");
  });
  if (stats.isFile()) return { archive: (name) => packOne(path, name), async [Symbol.asyncDispose]() {} };
  const scratch = await mkdtemp(join(tmpdir(), "caisson-bundle-"));
  const dispose = () => rm(scratch, { recursive: true, force: true });
  try {
    const file = join(scratch, "bundle");
    await makeBundle(path, file);
    return { archive: (name) => packOne(file, name), [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Nothing of the repository's settings, and nothing of the user's, is acted upon. */
const harmless = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "protocol.allow=never",
  "core.pager=cat",
];

async function makeBundle(repository: string, file: string): Promise<void> {
  const settings = [...harmless, `safe.directory=${repository}`].flatMap((setting) => ["-c", setting]);
  const args = ["--no-replace-objects", "--no-pager", ...settings, "-C", repository];
  const child = spawn("git", [...args, "bundle", "create", "--quiet", file, "HEAD", "--branches", "--tags"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: "/usr/bin:/bin",
      HOME: "/nonexistent",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_NO_LAZY_FETCH: "1",
      GIT_CEILING_DIRECTORIES: join(repository, ".."),
    },
  });
  let words = "";
  child.stderr.on("data", (data: Buffer) => {
    if (words.length < 2000) words += data.toString();
  });
  const code = await new Promise<number | null>((done) => {
    child.once("error", () => done(null));
    child.once("close", done);
  });
  if (code !== 0)
    throw new CaissonError(
      "INVALID_INPUT",
      `it is no repository that can be read: ${words.trim().slice(0, 300)}`,
    );
}
