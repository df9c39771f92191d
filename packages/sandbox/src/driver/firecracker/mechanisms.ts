import type { Mechanism } from "@caisson/contract";
import { enforced, machineMechanisms } from "../microvm/mechanisms.ts";
import type { MachineShape } from "./argv.ts";

/** What Firecracker, its jailer and the keeper enforce. */
export function firecrackerMechanisms({ memoryBytes }: MachineShape): Mechanism[] {
  return [
    ...machineMechanisms(
      { machine: "KVM", vmm: "Firecracker", devices: "Firecracker" },
      {
        machine: "a kernel of its own on hardware virtualisation",
        devices: "one read-only disk and a socket to the host",
        memoryBytes,
      },
    ),
    enforced("vmm.seccomp", "Firecracker", "a list of allowed calls for each of its threads"),
    enforced("vmm.jail", "jailer", "a root directory of its own that holds what the machine is made of"),
    enforced("vmm.namespaces", "jailer", "mount, network, ipc and uts"),
    enforced("uid", "jailer", "an unused uid per machine"),
  ];
}
