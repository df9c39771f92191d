// What sandboxes of every driver meet in tests: the small internet of `world.ts`, and in it a TLS host that gets a secret.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHost } from "../../packages/sandbox/src/secrets/testing/host.ts";
import { setTraps } from "../support/network/attempts.ts";
import { makeWorld } from "../support/network/world.ts";

export async function openOutside() {
  const world = await makeWorld(["allowed.test", "a.below.test", "below.test", "denied.test"]);
  setTraps(world);
  const host = await startHost("secret.test");
  world.names.set("secret.test", ["127.0.0.1"]);
  const dir = mkdtempSync(join(tmpdir(), "caisson-outside-"));
  chmodSync(dir, 0o755);
  // Also where the suite does not get as far as to close it.
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  const ca = join(dir, "ca.pem");
  writeFileSync(ca, host.certificate);
  return {
    world,
    heard: host.heard,
    secretPort: host.port,
    env: { CAISSON_NETWORK_DNS_SERVERS: world.names.address, CAISSON_NETWORK_EXTRA_CA: ca },
    async close() {
      host[Symbol.dispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}
