import assert from "node:assert/strict";
import { test } from "node:test";
import { machineArgv } from "./argv.ts";

const programs = {
  bwrap: "/usr/bin/bwrap",
  qemu: "/usr/bin/qemu-system-x86_64",
  prlimit: "/usr/bin/prlimit",
};
const shape = { memoryBytes: 1024 ** 3, sandboxBytes: 1024 ** 3, accel: "tcg", tscKhz: 2_300_000 } as const;
const root = [
  { path: "/usr", kind: "bind", source: "/usr" },
  { path: "/etc/ssl/certs", kind: "bind", source: "/etc/ssl/certs" },
] as const;

test("QEMU gets no network, no files of the host but its own program, and cannot start others", () => {
  const line = machineArgv(programs, root, shape, { kind: "saved" }, ["image"]).join(" ");
  assert.match(line, /--unshare-user .*--unshare-net .*--cap-drop ALL/);
  assert.match(line, /-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny/);
  assert.doesNotMatch(line, /\/etc\/|-netdev|-nic|--bind |--share|\/dev\/kvm/);
  assert.match(line, /readonly=on/);
  assert.match(line, /^\/usr\/bin\/prlimit --fsize=[0-9]+ /);
});

test("the memory of a saved machine is private to each copy, a template's is its file", () => {
  const line = (start: Parameters<typeof machineArgv>[3]) =>
    machineArgv(programs, root, shape, start, ["image"]).join(" ");
  assert.match(line({ kind: "saved" }), /share=off,mem-path=.*-incoming fd:/);
  assert.match(line({ kind: "boot", memory: "file" }), /share=on,mem-path=/);
  assert.doesNotMatch(line({ kind: "boot", memory: "file" }), /-incoming/);
});

test("every disk is read-only, and the machine is told of a second one", () => {
  const line = (disks: string[]) =>
    machineArgv(programs, root, shape, { kind: "boot", memory: "file" }, disks).join(" ");
  assert.doesNotMatch(line(["image"]), /caisson\.beside/);
  const both = line(["image", "beside"]);
  assert.match(both, / caisson\.link=ports caisson\.beside /);
  const drives = both.match(/-drive \S+/g)!;
  assert.deepEqual(
    drives.map((drive) => [/\{fd:(\w+)\}/.exec(drive)![1], drive.includes("readonly=on")]),
    [
      ["image", true],
      ["beside", true],
    ],
  );
});
