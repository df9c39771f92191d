// Who is whom on the host is not for a sandbox to say: what it lets everybody write, nobody else on the host may.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { applyChanges } from "../../../packages/sandbox/src/changes/index.ts";
import { root } from "../../support/daemon.ts";

const guest = process.env.CAISSON_GUEST ?? join(root, ".caisson/bin/caisson-guest");
const dir = mkdtempSync(join(tmpdir(), "caisson-modes-"));
after(() => rmSync(dir, { recursive: true }));

test("others may write what they could write before, and nothing more", async () => {
  const [projectDir, layer] = [join(dir, "project"), join(dir, "layer")];
  const upper = join(layer, "upper");
  for (const path of [projectDir, upper]) mkdirSync(join(path, ".git"), { recursive: true });
  for (const name of ["kept", "was-open"]) writeFileSync(join(projectDir, name), "old");
  chmodSync(join(projectDir, "was-open"), 0o666);
  mkdirSync(join(upper, "made"));
  for (const name of ["kept", "was-open", "new", "made/inner"]) writeFileSync(join(upper, name), "changed");
  for (const name of ["kept", "was-open", "new", "made/inner"]) chmodSync(join(upper, name), 0o666);
  for (const name of [".git", "made"]) chmodSync(join(upper, name), 0o777);
  const attachedAtMs = Date.now() + 3_600_000;
  await applyChanges(
    {
      guest,
      projectDir,
      dir: layer,
      isCopy: false,
      attachedAtMs,
      uid: process.getuid!(),
      gid: process.getgid!(),
    },
    { paths: [], dryRun: false },
  );
  const modes = [".git", "made", "kept", "new", "made/inner", "was-open"].map((name) =>
    (statSync(join(projectDir, name)).mode & 0o7777).toString(8),
  );
  assert.deepEqual(modes, ["775", "775", "664", "664", "664", "666"]);
});
