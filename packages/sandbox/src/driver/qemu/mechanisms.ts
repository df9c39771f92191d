import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";
import { enforced, machineMechanisms } from "../microvm/mechanisms.ts";
import type { MachineShape } from "./argv.ts";

/** What QEMU and the keeper enforce by themselves. */
export function qemuMechanisms({ accel, memoryBytes }: MachineShape, hasOwnUid: boolean): Mechanism[] {
  const machine =
    accel === "kvm"
      ? "a kernel of its own on hardware virtualisation"
      : "a kernel of its own on emulated hardware (emulated: the wall is QEMU itself, a large program)";
  return [
    ...machineMechanisms(
      { machine: accel === "kvm" ? "KVM" : "TCG", vmm: "QEMU", devices: "microvm" },
      { machine, devices: "one read-only disk and two serial ports", memoryBytes },
    ),
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
