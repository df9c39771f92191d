import { execFile } from "node:child_process";
import { release } from "node:os";
import type { Keeper } from "../../keeper/index.ts";
import type { Probe } from "../driver.ts";
import { findProgram } from "../find-program.ts";
import { trialArgv } from "./argv.ts";
import { type HostEntry, readHostRoot } from "./host-root.ts";
import { explainNamespaces, explainTrial } from "./obstacles.ts";
import { UidPool } from "./uids.ts";

/** What a usable host has. */
export interface Ground {
  bwrap: string;
  hostRoot: HostEntry[];
  /** The keeper's. */
  uid: number;
  /** The keeper is the host's root: each sandbox gets a uid of its own. */
  givesUids: boolean;
}

/** Is bubblewrap usable here? By really starting one, since every part of it can be forbidden. */
export async function probeGround(keeper: Keeper): Promise<{ probe: Probe; ground?: Ground }> {
  if (process.platform !== "linux") return unusable("bubblewrap needs Linux");
  const [major = 0, minor = 0] = release().split(".").map(Number);
  if (major < 5 || (major === 5 && minor < 12)) {
    return unusable(
      `Linux ${release()} cannot hand mounts into a sandbox`,
      "upgrade the kernel to 5.12 or newer (Debian: sudo apt-get install linux-image-amd64)",
    );
  }
  const bwrap = await findProgram("bwrap");
  if (bwrap === undefined) return unusable("bubblewrap is not installed", installCommand());
  const identity = await keeper.identity();
  if (!identity.userNamespaces) return { probe: explainNamespaces(identity.userNamespacesReason) };
  const hostRoot = await readHostRoot();
  const { uid, canChangeUid: givesUids } = identity;
  const trialUid = givesUids ? await new UidPool().take() : uid;
  const words = await trial(trialArgv(bwrap, hostRoot), trialUid);
  if (words !== undefined) return { probe: explainTrial(words) };
  return { probe: { usable: true }, ground: { bwrap, hostRoot, uid, givesUids } };
}

function unusable(reason: string, fix?: string): { probe: Probe } {
  return { probe: { usable: false, reason, ...(fix === undefined ? {} : { fix }) } };
}

/** Resolves with bubblewrap's words when it failed. */
function trial(argv: string[], uid: number): Promise<string | undefined> {
  const identity = uid === process.getuid?.() ? {} : { uid, gid: uid };
  const options = { timeout: 10_000, maxBuffer: 65_536, cwd: "/", env: {}, ...identity };
  return new Promise((resolve) => {
    execFile(argv[0] as string, argv.slice(1), options, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim() || error.message);
    });
  });
}

function installCommand(): string {
  return process.getuid?.() === 0 ? "apt-get install -y bubblewrap" : "sudo apt-get install -y bubblewrap";
}
