import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../daemon.ts";

/** Puts programs named `firecracker` and `jailer` into a directory, both of them the peer. */
export function installPeer(directory: string): {
  requests(): string[];
  words(): string[];
  fault(words: string): void;
} {
  mkdirSync(directory, { recursive: true });
  const faults = join(directory, "faults");
  const guest = join(root, ".caisson/bin/caisson-guest");
  const peer = join(import.meta.dirname, "peer.ts");
  const words = [process.execPath, "--no-warnings", peer, guest, faults].map((word) => `'${word}'`).join(" ");
  for (const name of ["firecracker", "jailer"]) {
    writeFileSync(join(directory, name), `#!/bin/sh\nexec env PATH=/usr/bin:/bin ${words} "$@"\n`);
    chmodSync(join(directory, name), 0o755);
  }
  return {
    words: () => readFileSync(`${faults}.words`, "utf8").trim().split("\n"),
    requests: () => readFileSync(`${faults}.requests`, "utf8").trim().split("\n"),
    fault: (what) => writeFileSync(faults, what),
  };
}
