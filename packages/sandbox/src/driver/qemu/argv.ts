import type { HostEntry } from "../bubblewrap/host-root.ts";
import type { Shape } from "../microvm/template.ts";

/** A machine of this shape; a saved state fits only the same shape. */
export interface MachineShape extends Shape {
  accel: "kvm" | "tcg";
  /** Of the processor's clock; calibrating it under emulation can hang under load. */
  tscKhz: number;
}

/** Where a machine's memory comes from, by the name of the descriptor that is handed over. */
export type MachineStart =
  /** Boots without a disk, and leaves at once. */
  | { kind: "try" }
  /** Boots; its memory is a file that it may write, and becomes the template's. */
  | { kind: "boot"; memory: "file" | "private" }
  /** Goes on where it was saved: a copy of a template, or of a sandbox. Memory is shared until it is written. */
  | { kind: "saved" };

/** What QEMU may write into any one file, beyond its memory: its log, and the state of its devices. */
const moreFileBytes = 256 * 1024 * 1024;

/**
 * The command that starts a machine: QEMU in namespaces of its own, without network, with nothing of the host but its
 * own program and libraries; everything else comes as descriptors, its disks among them. `{socket}` and `{fd:NAME}` are filled in
 * by the keeper.
 */
export function machineArgv(
  programs: { bwrap: string; qemu: string; prlimit: string },
  hostRoot: readonly HostEntry[],
  shape: MachineShape,
  start: MachineStart,
  disks: readonly string[],
): string[] {
  return [
    ...[programs.prlimit, `--fsize=${shape.memoryBytes + moreFileBytes}`, "--core=0", "--", programs.bwrap],
    ...[
      "--unshare-user",
      "--unshare-ipc",
      "--unshare-pid",
      "--unshare-net",
      "--unshare-uts",
      "--unshare-cgroup",
    ],
    ...["--clearenv", "--chdir", "/", "--cap-drop", "ALL"],
    ...hostRoot.filter(({ path }) => !path.startsWith("/etc/")).flatMap(shown),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...(shape.accel === "kvm" ? ["--dev-bind", "/dev/kvm", "/dev/kvm"] : []),
    ...["--", programs.qemu],
    ...machine(shape, start, disks),
  ];
}

function shown(entry: HostEntry): string[] {
  if (entry.kind === "symlink") return ["--symlink", entry.target, entry.path];
  return ["--ro-bind", entry.source, entry.path];
}

function machine(shape: MachineShape, start: MachineStart, disks: readonly string[]): string[] {
  const emulated = shape.accel === "tcg";
  return [
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-name", "caisson"],
    // The filter that QEMU puts on itself: no programs, no privileges, nothing obsolete.
    ...["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"],
    ...["-M", "microvm,x-option-roms=off,isa-serial=on,rtc=on,acpi=on,memory-backend=mem"],
    ...["-accel", emulated ? "tcg,tb-size=96" : "kvm", "-cpu", emulated ? "max,la57=off" : "host"],
    ...["-m", `${shape.memoryBytes / 1024 / 1024}M`, "-smp", "1"],
    ...["-object", memoryBackend(shape, start)],
    ...(start.kind === "try" ? booting(shape, "caisson.link=none") : []),
    ...(start.kind === "boot" ? booting(shape, wordsOf(disks)) : []),
    // What the machine's kernel and first process say when they end goes to the launch log.
    ...["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"],
    ...["-device", "virtio-serial-device,max_ports=4"],
    ...port("control", "{fd:control}"),
    ...port("data", "{socket}"),
    ...disks.flatMap(disk),
    ...[
      "-chardev",
      "socket,id=monitor,fd={fd:monitor},server=on,wait=off",
      "-mon",
      "chardev=monitor,mode=control",
    ],
    ...(start.kind === "saved" ? goingOn : []),
  ];
}

function disk(name: string): string[] {
  const file = `file.driver=file,file.locking=off,file.filename=/proc/self/fd/{fd:${name}}`;
  return [
    ...["-drive", `if=none,id=${name},format=raw,readonly=on,${file}`],
    ...["-device", `virtio-blk-device,drive=${name}`],
  ];
}

/** For the machine's first process. */
function wordsOf(disks: readonly string[]): string {
  return ["caisson.link=ports", ...(disks.includes("beside") ? ["caisson.beside"] : [])].join(" ");
}

function memoryBackend({ memoryBytes }: MachineShape, start: MachineStart): string {
  const size = `id=mem,size=${memoryBytes}`;
  if (start.kind === "saved")
    return `memory-backend-file,${size},share=off,mem-path=/proc/self/fd/{fd:memory}`;
  if (start.kind === "boot" && start.memory === "file") {
    return `memory-backend-file,${size},share=on,mem-path=/proc/self/fd/{fd:memory}`;
  }
  return `memory-backend-ram,${size}`;
}

/** Saved devices do not say what machine they are of; it would be waited for. */
const goingOn = ["-incoming", "fd:{fd:state}", "-global", "migration.send-configuration=off"];

/** A machine that goes on has its kernel in its memory; QEMU would hold another copy of it. */
function booting(shape: MachineShape, words: string): string[] {
  return [
    ...["-kernel", "/proc/self/fd/{fd:kernel}", "-initrd", "/proc/self/fd/{fd:initrd}"],
    ...["-append", kernelCommandLine(shape, words)],
  ];
}

/**
 * Programs lie at the same addresses each time where the machine is emulated: what was translated of them is found again by
 * its address. The report says so. An emulated processor has no second clock to check its first one by, without which the kernel
 * counts ticks of four milliseconds instead, and loses those that come late.
 */
function kernelCommandLine({ accel, tscKhz }: MachineShape, words: string): string {
  const clock = [`tsc_early_khz=${tscKhz}`, "tsc=reliable", "no_timer_check"];
  return [
    ...["console=ttyS0", "loglevel=1", "panic=-1", "reboot=t", "edd=off", "random.trust_cpu=off"],
    // What the wall uses of them. Others have no rules here, and are asked at each call all the same; nor does anybody ask for what
    // the kernel would note at each change of process.
    // Twice a second the kernel would look whether its memory is in pieces.
    ...["lsm=landlock,yama", "audit=0", "psi=0", "sysctl.vm.compaction_proactiveness=0"],
    ...(accel === "tcg" ? ["norandmaps", "mitigations=off", ...clock] : []),
    words,
  ].join(" ");
}

function port(name: string, descriptor: string): string[] {
  return [
    ...["-chardev", `socket,id=${name},fd=${descriptor},server=on,wait=off`],
    ...["-device", `virtserialport,chardev=${name},name=caisson.${name}`],
  ];
}
