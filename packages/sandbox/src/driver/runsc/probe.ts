import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type HostEntry, readHostRoot } from "../bubblewrap/host-root.ts";
import type { Probe } from "../driver.ts";
import { findProgram } from "../find-program.ts";
import { makeTrialDirectory } from "../trial-directory.ts";
import { runscArgv } from "./argv.ts";
import { writeTrialBundle } from "./bundle.ts";
import { explainTrial } from "./obstacles.ts";

/** What a usable host has. */
export interface Ground {
  runsc: string;
  hostRoot: HostEntry[];
  /** The first that really ran something. */
  platform: string;
  /** The daemon is not root. */
  rootless: boolean;
}

/** Newer ones first; a build that does not know one says so at once. KVM can be there and hang, so it is not tried. */
const platforms = ["systrap", "ptrace"];
/** Starting takes a fifth of a second; a platform that hangs must not be waited for. */
const trialMs = 10_000;

/** Is gVisor usable here? By really running something on each platform, in the daemon's directory. */
export async function probeGround(home: string): Promise<{ probe: Probe; ground?: Ground }> {
  if (process.platform !== "linux") return unusable("gVisor needs Linux");
  const runsc = await findProgram("runsc");
  if (runsc === undefined) {
    const sudo = process.getuid?.() === 0 ? "" : "sudo ";
    return unusable("runsc (gVisor) is not installed", `${sudo}apt-get install -y runsc`);
  }
  const hostRoot = await readHostRoot();
  const rootless = process.getuid?.() !== 0;
  let last: Probe = { usable: false };
  for (const platform of platforms) {
    const ground = { runsc, hostRoot, platform, rootless };
    const words = await trial(home, ground);
    if (words === undefined) return { probe: { usable: true }, ground };
    last = explainTrial(words);
  }
  return { probe: last };
}

function unusable(reason: string, fix?: string): { probe: Probe } {
  return { probe: { usable: false, reason, ...(fix === undefined ? {} : { fix }) } };
}

/** Runs `true`; resolves with runsc's words when that failed. */
async function trial(
  home: string,
  { runsc, hostRoot, platform, rootless }: Ground,
): Promise<string | undefined> {
  const dir = await makeTrialDirectory(home, "runsc");
  try {
    const bundle = await writeTrialBundle(dir, hostRoot);
    // Its control socket is named after it, for the whole machine: another daemon may be trying, too.
    const name = `trial-${randomUUID()}`;
    const argv = runscArgv({ runsc, state: join(dir, "state"), bundle, platform, rootless }, name);
    const options = {
      timeout: trialMs,
      killSignal: "SIGKILL" as const,
      maxBuffer: 65_536,
      cwd: "/",
      env: {},
    };
    return await new Promise((resolve) => {
      const child = execFile(argv[0] as string, argv.slice(1), options, (error, stdout, stderr) => {
        if (error?.killed) resolve(`platform ${platform} did nothing for ${trialMs / 1000} seconds`);
        else resolve(error === null ? undefined : stderr.trim() || stdout.trim() || error.message);
      });
      child.stdin?.end();
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
