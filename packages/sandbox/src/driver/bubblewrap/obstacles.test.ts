import assert from "node:assert/strict";
import { test } from "node:test";
import { explainNamespaces, explainTrial } from "./obstacles.ts";

test("each usual obstacle has its own way out", () => {
  const cases: [string, RegExp][] = [
    ["kernel.apparmor_restrict_unprivileged_userns is 1 (mounting: Permission denied)", /sysctl.*apparmor/],
    ["user.max_user_namespaces is 0 (making: No space left)", /sysctl -w user\.max_user_namespaces=/],
    [
      "kernel.unprivileged_userns_clone is 0 (making: not permitted)",
      /sysctl -w kernel\.unprivileged_userns_clone=1/,
    ],
    ["a seccomp filter around this machine forbids it (…)", /--security-opt seccomp=unconfined/],
    ["the kernel has no user namespaces (…)", /CONFIG_USER_NS/],
  ];
  for (const [words, fix] of cases) {
    const probe = explainNamespaces(words);
    assert.equal(probe.usable, false);
    assert.match(probe.fix ?? "", fix);
    assert.ok(probe.reason);
  }
});

test("bubblewrap's own words lead to a way out, or are quoted", () => {
  assert.match(
    explainTrial("bwrap: Can't mount proc on /newroot/proc: Operation not permitted").fix ?? "",
    /systempaths/,
  );
  assert.match(explainTrial("bwrap: Unknown option --info-fd").fix ?? "", /install/);
  assert.match(explainTrial("bwrap: setting up uid map: Permission denied").fix ?? "", /apparmor/);
  const unknown = explainTrial(`bwrap: something new\n${"x".repeat(1000)}`);
  assert.deepEqual(unknown, { usable: false, reason: "bubblewrap failed: bwrap: something new" });
});
