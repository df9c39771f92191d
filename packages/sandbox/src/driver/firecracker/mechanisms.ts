import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";
import type { MachineShape } from "./argv.ts";

/** What Firecracker, its jailer and the keeper enforce; the guest inside reports what it does when it seals. */
export function firecrackerMechanisms({ memoryBytes }: MachineShape): Mechanism[] {
  return [
    enforced("machine", "KVM", "a kernel of its own on hardware virtualisation"),
    enforced(
      "root",
      "erofs",
      "a read-only disk shared by all machines; everything else is in the machine's memory",
    ),
    enforced("devices", "Firecracker", "one read-only disk and a socket to the host; no network card"),
    enforced("namespace.network", "unshare", "a network namespace of its own, in a machine without network"),
    enforced("environment", "execve", "nothing of the host's"),
    enforced("network.device", "Firecracker", "the machine has none"),
    enforced("memory.machine", "Firecracker", `${memoryBytes} bytes`),
    enforced("vmm.seccomp", "Firecracker", "a list of allowed calls for each of its threads"),
    enforced("vmm.jail", "jailer", "a root directory of its own that holds what the machine is made of"),
    enforced("vmm.namespaces", "jailer", "mount, network, ipc and uts"),
    enforced("uid", "jailer", "an unused uid per machine"),
  ];
}

function enforced(name: string, by: string, detail: string): Mechanism {
  return create(MechanismSchema, { name, state: MechanismState.ENFORCED, by, detail });
}
