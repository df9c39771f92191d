import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { hostMounts, readMountinfo } from "./host-mounts.ts";

const root = "22 1 8:1 / / rw - ext4 /dev/sda1 rw";
const usrLocal = "30 22 8:2 / /usr/local rw - ext4 /dev/sda2 rw";
const home = "31 22 8:3 / /home rw - ext4 /dev/sda3 rw";
const lookalike = "32 22 8:4 / /usrx rw - ext4 /dev/sda4 rw";

test("only mounts that a sandbox would show count as a change", () => {
  assert.equal(hostMounts([root, home, lookalike].join("\n")), root);
  assert.notEqual(hostMounts([root, usrLocal].join("\n")), hostMounts(root));
});

test("the table is read whole, and anew each time", () => {
  for (let i = 0; i < 3; i++) assert.equal(readMountinfo(), readFileSync("/proc/self/mountinfo", "latin1"));
});
