// A file system of a test's own. Root mounts it; an ordinary user may do that only in namespaces of his own, so that there the test is
// run once more inside of them.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { eventually } from "./eventually.ts";

export interface OwnMountOptions {
  /** The file of the test, which runs nothing else of it when it is run again. */
  file: string;
  /** Of the file system: a number and a unit, as mount has them. */
  size: string;
  /** Further variables where it is run again. */
  env?: Record<string, string>;
}

/** Set inside of the namespaces. */
const given = process.env.CAISSON_TEST_MOUNT;

/** Runs the test's body with a small file system, mounted at `at`; what it is mounted in is the test's own, too. */
export async function onOwnMount(
  test: TestContext,
  options: OwnMountOptions,
  body: (at: string) => Promise<void>,
): Promise<void> {
  if (given !== undefined) return body(given);
  const place = mkdtempSync(join(tmpdir(), "caisson-mount-"));
  chmodSync(place, 0o755);
  const at = join(place, "around/mounted");
  mkdirSync(at, { recursive: true });
  try {
    if (process.getuid!() === 0) await asRoot(at, options, body);
    else await inNamespaces(at, options, test);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function asRoot(
  at: string,
  { size }: OwnMountOptions,
  body: (at: string) => Promise<void>,
): Promise<void> {
  assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=700`, "tmpfs", at]).status, 0);
  try {
    await body(at);
  } finally {
    // Who used it may take a moment to go.
    await eventually(
      () => spawnSync("umount", [at]).status,
      (status) => status === 0,
    );
  }
}

/** Root of the outer one mounts; in the inner one everybody is who he was, with no more rights than outside. */
const script = `
  mount -t tmpfs -o "size=$2,mode=700" tmpfs "$1"
  user=$3 group=$4
  shift 4
  exec unshare --user --map-user="$user" --map-group="$group" -- "$@"`;

async function inNamespaces(at: string, options: OwnMountOptions, test: TestContext): Promise<void> {
  const { file, size } = options;
  // With the runner's variable set, a file reports to the runner instead of failing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const only = `--test-name-pattern=${test.name.replace(/[^\w ,]/g, ".")}$`;
  const words = [at, size, String(process.getuid!()), String(process.getgid!())];
  const node = [process.execPath, "--no-warnings", only, file];
  const { stdout } = await promisify(execFile)(
    "unshare",
    ["--user", "--map-root-user", "--mount", "sh", "-euc", script, "sh", ...words, ...node],
    { env: { ...env, ...options.env, CAISSON_TEST_MOUNT: at }, signal: test.signal, maxBuffer: 16 << 20 },
  ).catch((error: Error & { stdout?: string }) => {
    throw new Error(`${error.message}\n${error.stdout}`);
  });
  assert.match(stdout, /^. pass 1$/m, stdout);
}
