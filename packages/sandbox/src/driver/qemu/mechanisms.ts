import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";
import type { MachineShape } from "./argv.ts";

/** What QEMU and the keeper enforce by themselves; the guest inside reports what it does when it seals. */
export function qemuMechanisms({ accel, memoryBytes }: MachineShape, hasOwnUid: boolean): Mechanism[] {
  const machine =
    accel === "kvm"
      ? "a kernel of its own on hardware virtualisation"
      : "a kernel of its own on emulated hardware (emulated: the wall is QEMU itself, a large program)";
  return [
    enforced("machine", accel === "kvm" ? "KVM" : "TCG", machine),
    enforced(
      "root",
      "erofs",
      "a read-only disk shared by all machines; everything else is in the machine's memory",
    ),
    enforced("devices", "microvm", "one read-only disk and two serial ports; no network card"),
    enforced("namespace.network", "unshare", "a network namespace of its own, in a machine without network"),
    enforced("environment", "execve", "nothing of the host's"),
    enforced("network.device", "microvm", "the machine has none"),
    enforced("memory.machine", "QEMU", `${memoryBytes} bytes`),
    enforced("vmm.seccomp", "QEMU", "no programs, no privileges, no obsolete calls"),
    enforced(
      "vmm.namespaces",
      "bwrap",
      "user, mount, pid, network, ipc, uts and cgroup; files only as descriptors",
    ),
    ...(accel === "tcg" ? [atFixedAddresses] : []),
    hasOwnUid
      ? enforced("uid", "setresuid", "an unused uid per machine, dropped to before bubblewrap")
      : enforced("uid", "daemon", "the daemon's own uid, which is not the host's root"),
  ];
}

/** What an emulator has translated of a program is of use only where the program lies where it lay. */
const atFixedAddresses = create(MechanismSchema, {
  name: "addresses",
  state: MechanismState.NOT_ENFORCED,
  detail: "programs lie at the same addresses each time, since the machine is emulated",
});

function enforced(name: string, by: string, detail: string): Mechanism {
  return create(MechanismSchema, { name, state: MechanismState.ENFORCED, by, detail });
}
