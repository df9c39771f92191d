// The wall by itself: the guest's own test program (guest/tests/wall) seals a sandbox without a daemon.
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { collect } from "./collect.ts";
import { denied, type Fixture } from "./fixture.ts";
import type { ProbeResult, Wall } from "./wall.ts";

const guest = join(import.meta.dirname, "../../../guest");
/** The uid that the harness gives to sandboxes of root. */
const sandboxOfRoot = 59_001;

/** Builds the harness, as `cargo test` does, and returns a copy that every user can run. */
export function buildHarness(): string {
  const built = execFileSync(
    "cargo",
    ["test", "--locked", "--test", "wall", "--no-run", "--message-format=json"],
    {
      cwd: guest,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 64 << 20,
    },
  );
  const artifact = built
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as { executable?: string; target?: { name: string } })
    .find((message) => message.executable && message.target?.name === "wall");
  if (!artifact?.executable) throw new Error("cargo built no harness");
  const folder = mkdtempSync(join(tmpdir(), "caisson-harness-"));
  chmodSync(folder, 0o755);
  copyFileSync(artifact.executable, join(folder, "wall"));
  chmodSync(join(folder, "wall"), 0o755);
  return join(folder, "wall");
}

/** As this user, or as another one where root asks. */
export function harnessWall(harness: string, account: { name: string; uid: number; gid: number }): Wall {
  return {
    name: `harness as ${account.name}`,
    has: ["deny_read", "read_only", "guest_path"],
    async open({ fixture, syscalls }) {
      return { run: (probe) => seal(fixture, probe, syscalls), async [Symbol.asyncDispose]() {} };
    },
  };

  async function seal(fixture: Fixture, probe: string, syscalls: readonly string[]): Promise<ProbeResult> {
    const layers = mkdtempSync(join(fixture.home, "layers/"));
    const owner = account.uid === 0 ? sandboxOfRoot : account.uid;
    if (process.getuid?.() === 0) {
      chownSync(join(fixture.home, "layers"), account.uid, account.gid);
      chownSync(layers, owner, owner);
    }
    const workspace = "/work/project";
    const argv = [
      "run",
      ...["--overlay", `${fixture.workspace}:${workspace}`, layers],
      ...["--ro-bind", `${fixture.readOnly}:/opt/read-only`],
      ...["--workdir", workspace, "--tmpfs-bytes", String(64 << 20)],
      ...denied.flatMap((name) => ["--deny-read", `${workspace}/${name}`]),
      ...syscalls.flatMap((name) => ["--group", name]),
      ...["--", "/usr/bin/env", `CANARY=${fixture.canary}`, "READONLY=/opt/read-only"],
      ...[`ABSTRACT=${fixture.abstractSocket}`, "GUEST=/.caisson-guest", `programs/${probe}`],
    ];
    return await collect(harness, argv, { account, env: process.env });
  }
}
