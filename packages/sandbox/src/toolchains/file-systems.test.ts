import assert from "node:assert/strict";
import { test } from "node:test";
import { canMapOwners, mountPoints } from "./file-systems.ts";

test("mount points are read with the blanks in their names", () => {
  const mountinfo = "27 1 254:0 / / rw - ext4 a rw\n28 27 0:25 / /home/my\\040tools rw - tmpfs b rw\n";
  assert.deepEqual(mountPoints(mountinfo), ["/", "/home/my tools"]);
  assert.ok(mountPoints().includes("/proc"));
});

test("the kernel's own file systems, and what is not there, map no owners", () => {
  assert.equal(canMapOwners("/proc"), false);
  assert.equal(canMapOwners("/nonexistent"), false);
});
