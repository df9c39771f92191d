import assert from "node:assert/strict";
import { test } from "node:test";
import { bubblewrapArgv, guestPath } from "./argv.ts";
import { readHostRoot } from "./host-root.ts";

test("of the host's /etc only what is listed is there, and no file that may hold a secret", async () => {
  const shown = (await readHostRoot()).map((entry) => entry.path);
  assert.ok(shown.includes("/usr"));
  for (const secret of [
    "/etc",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/passwd",
    "/etc/ssh",
    "/etc/ssl",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/machine-id",
    "/etc/hosts",
    "/etc/environment",
    "/etc/maven",
    "/home",
    "/root",
    "/var",
    "/run",
  ]) {
    assert.equal(shown.includes(secret), false, secret);
  }
});

test("everything of the host is read-only, and a link of the host's stays a link", () => {
  const argv = bubblewrapArgv("/usr/bin/bwrap", [
    { path: "/usr", kind: "bind", source: "/usr" },
    { path: "/bin", kind: "symlink", target: "usr/bin" },
    { path: "/etc/ssl/certs", kind: "bind", source: "/etc/static/certs" },
  ]);
  const line = argv.join(" ");
  assert.match(
    line,
    / --ro-bind \/usr \/usr --symlink usr\/bin \/bin --ro-bind \/etc\/static\/certs \/etc\/ssl\/certs /,
  );
  assert.doesNotMatch(line, /--bind |--dev-bind|-try|--share|--unshare-all|--die-with-parent/);
  assert.match(line, / --dir \/etc --dir \/etc\/ssl --dir \/var /);
  assert.match(
    line,
    new RegExp(` --ro-bind {guest} ${guestPath} -- ${guestPath} init --listen-fd {socket}$`),
  );
});
