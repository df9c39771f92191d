import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";

/** What is the same for every machine, whoever plays it; the guest inside reports what it does when it seals. */
export function machineMechanisms(
  by: { machine: string; vmm: string; devices: string },
  detail: { machine: string; devices: string; memoryBytes: number },
): Mechanism[] {
  return [
    enforced("machine", by.machine, detail.machine),
    enforced(
      "root",
      "erofs",
      "a read-only disk shared by all machines; everything else is in the machine's memory",
    ),
    enforced("devices", by.devices, `${detail.devices}; no network card`),
    enforced("namespace.network", "unshare", "a network namespace of its own, in a machine without network"),
    enforced("environment", "execve", "nothing of the host's"),
    enforced("network.device", by.devices, "the machine has none"),
    enforced("memory.machine", by.vmm, `${detail.memoryBytes} bytes, its kernel's included`),
  ];
}

export function enforced(name: string, by: string, detail: string): Mechanism {
  return create(MechanismSchema, { name, state: MechanismState.ENFORCED, by, detail });
}
