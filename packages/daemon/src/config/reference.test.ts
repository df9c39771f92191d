import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { reference } from "./reference.ts";
import { type SettingKey, variableOf } from "./settings.ts";

const root = join(import.meta.dirname, "../../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

test("docs/configuration.md is what the tables say: `node packages/daemon/src/config/write-reference.ts`", () => {
  assert.equal(read("docs/configuration.md"), reference());
});

const police = "packages/daemon/src/config/police.test.ts";

/** Where each setting's effect is seen; a word where the test goes by another name than the setting's. */
const seen: Record<SettingKey, string | [file: string, word: string]> = {
  "listen.tcp": "test/e2e/http.test.ts",
  "listen.allowed_hosts": "test/e2e/settings.test.ts",
  "listen.allowed_origins": "test/e2e/browser/browser.test.ts",
  "listen.requests_per_second": "test/e2e/settings.test.ts",
  "auth.jwt.issuer": "test/e2e/tokens.test.ts",
  "auth.jwt.audience": "test/e2e/settings.test.ts",
  "auth.jwt.jwks": "test/e2e/tokens.test.ts",
  "auth.jwt.jwks_file": "test/e2e/settings.test.ts",
  "auth.jwt.jwks_url": "test/e2e/tokens.test.ts",
  "log.level": "packages/daemon/src/config/config.test.ts",
  "log.events_kept_days": ["packages/store/src/sqlite/sqlite.test.ts", "maxAgeMs"],
  "daemon.renew": ["packages/daemon/src/renewal/renewal.test.ts", "enabled: false"],
  "pool.min": "test/e2e/daemon.test.ts",
  "pool.max": "test/faults/docker.test.ts",
  "docker.host": "test/faults/docker.test.ts",
  "microvm.memory_mb": ["packages/sandbox/src/driver/qemu/argv.test.ts", "memoryBytes"],
  "microvm.store": "test/support/daemon.ts",
  "microvm.programs": "test/drivers/firecracker.test.ts",
  "admission.sandboxes": "test/e2e/admission.test.ts",
  "admission.memory_percent": ["packages/sandbox/src/engine/admission.test.ts", "memoryPercent"],
  "admission.cpu_percent": ["packages/sandbox/src/engine/admission.test.ts", "cpuPercent"],
  "admission.queue": "test/e2e/admission.test.ts",
  "sandbox.profile": police,
  "sandbox.minimum_tier": police,
  "sandbox.toolchains": police,
  "sandbox.image": police,
  "sandbox.network": police,
  "sandbox.network_allow": police,
  "sandbox.network_deny": police,
  "sandbox.network_presets": police,
  "sandbox.git_name": police,
  "sandbox.git_email": police,
  "sandbox.caches": police,
  "sandbox.env": police,
  "sandbox.idle_ttl_s": police,
  "network.dns_servers": "test/drivers/outside.ts",
  "network.extra_ca": "test/drivers/outside.ts",
  "approvals.timeout_s": "test/e2e/asking.test.ts",
  "approvals.ask": "test/e2e/approvals.test.ts",
  "approvals.rules": "test/e2e/approvals.test.ts",
  secrets: "test/security/secrets/secrets.test.ts",
  profiles: "packages/sandbox/src/profiles/profiles.test.ts",
  agents: "packages/sandbox/src/profiles/profiles.test.ts",
};

for (const [key, where] of Object.entries(seen) as [SettingKey, string | [string, string]][]) {
  test(`${key} is seen to have its effect`, () => {
    const [file, word] = typeof where === "string" ? [where, key.split(".").at(-1)!] : where;
    const text = read(file);
    assert.ok(text.includes(word) || text.includes(variableOf(key)), `${file} says nothing of ${key}`);
  });
}
