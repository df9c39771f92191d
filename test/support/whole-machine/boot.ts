// A machine of the tests' own with this host's programs, a kernel of its own, and control groups of the second version alone: a host that
// the one below may not be.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readHostRoot } from "../../../packages/sandbox/src/driver/bubblewrap/host-root.ts";
import { findProgram } from "../../../packages/sandbox/src/driver/find-program.ts";
import { cpioArchive, cpioDirectory, cpioFile } from "../../../packages/sandbox/src/driver/microvm/cpio.ts";
import { diskIds, makeDisk, source } from "../../../packages/sandbox/src/driver/microvm/erofs.ts";
import { makeHostImage, showEntry } from "../../../packages/sandbox/src/driver/microvm/host-image.ts";
import { findKernel, type GuestKernel } from "../../../packages/sandbox/src/driver/microvm/kernel.ts";
import { modulesInOrder } from "../../../packages/sandbox/src/driver/microvm/modules.ts";
import { readTscKhz } from "../../../packages/sandbox/src/driver/qemu/clock.ts";
import { microvmStore, root, self, temporaryDirectory } from "../daemon.ts";

const modules = ["virtio_pci", "virtio_blk", "crc32c_generic", "erofs", "overlay"];
const memory = "4G";
/** With two, what one processor translates of V8's code is wrong now and then for the other (QEMU 7.2). */
const processors = "1";

/** Runs a script of the shell as root in such a machine, in the project's directory; resolves with everything it printed. */
export async function runInMachine(script: string, withinMs: number): Promise<string> {
  const [bwrap, mkfs, qemu, kernel] = await Promise.all([
    findProgram("bwrap"),
    findProgram("mkfs.erofs"),
    findProgram("qemu-system-x86_64"),
    findKernel(),
  ]);
  if (!bwrap || !mkfs || !qemu || !kernel) throw new Error("QEMU, erofs-utils or a kernel is missing");
  const dir = temporaryDirectory(self());
  const tools = { bwrap, mkfs };
  const host = await makeHostImage(tools, join(microvmStore(self()), "images"), () => {});
  const project = join(dir, "project.erofs");
  await makeProjectDisk(tools, project);
  const initrd = join(dir, "initrd");
  writeFileSync(initrd, makeInitrd(kernel, script));
  const clock = `tsc_early_khz=${await readTscKhz()} tsc=reliable no_timer_check`;
  const disks = [host, project].flatMap((file) => [
    "-drive",
    `if=virtio,format=raw,readonly=on,file.driver=file,file.locking=off,file.filename=${file}`,
  ]);
  const machine = spawn(
    qemu,
    [
      ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"],
      ...["-M", "q35", "-accel", "tcg", "-cpu", "max,la57=off", "-smp", processors, "-m", memory],
      ...["-kernel", kernel.image, "-initrd", initrd, ...disks],
      ...["-append", `console=ttyS0 loglevel=3 panic=-1 edd=off mitigations=off ${clock}`],
    ],
    { stdio: ["ignore", "pipe", "inherit"], timeout: withinMs, killSignal: "SIGKILL" },
  );
  let said = "";
  for await (const text of machine.stdout.setEncoding("utf8")) said += text;
  return said.replaceAll("\r", "");
}

function makeProjectDisk(tools: { bwrap: string; mkfs: string }, path: string): Promise<void> {
  return readHostRoot().then((entries) => {
    const programs = entries.flatMap((entry) => showEntry(entry, ""));
    const shown = [...programs, "--ro-bind", root, source];
    // What is written while this is read, or of no use inside.
    const leftOut = [".git", ".caisson/compiled", "guest/target"];
    const options = ["--all-root", ...leftOut.map((name) => `--exclude-path=${name}`)];
    return makeDisk(tools, { name: "the project", path, id: diskIds.image, shown, options }, () => {});
  });
}

function makeInitrd({ modules: folder }: GuestKernel, script: string): Buffer {
  const order = modulesInOrder(readFileSync(`${folder}/modules.dep`, "utf8"), modules);
  // A machine that was just booted does not know what time it is.
  const words = `date -s @${Math.floor(Date.now() / 1000)} >/dev/null\n${script}\n`;
  return cpioArchive([
    ...["bin", "modules"].map(cpioDirectory),
    cpioFile("init", readFileSync(join(import.meta.dirname, "init.sh")), 0o755),
    cpioFile("bin/busybox", readFileSync("/usr/bin/busybox"), 0o755),
    cpioFile("script", Buffer.from(words)),
    ...order.map((path, index) => {
      const name = `modules/${String(index).padStart(2, "0")}-${path.slice(path.lastIndexOf("/") + 1)}`;
      return cpioFile(name, readFileSync(`${folder}/${path}`));
    }),
  ]);
}
