import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";

/** What gVisor enforces by itself; the guest reports what it does when it seals. */
export function runscMechanisms(platform: string, rootless: boolean): Mechanism[] {
  const kernel = `a kernel of its own in a process, platform ${platform}; the host's sees few calls of that process`;
  return [
    enforced("kernel", kernel),
    ...["user", "pid", "network", "ipc", "uts", "mount"].map((kind) =>
      enforced(`namespace.${kind}`, "an object of gVisor's kernel"),
    ),
    lacking("namespace.cgroup", "gVisor shows no control groups"),
    enforced("root", "in memory; of the host only programs, libraries and parts of /etc, read-only"),
    enforced("devices", "gVisor's own: null, zero, full, random, urandom, tty and private terminals"),
    enforced("uid", rootless ? "the daemon's own uid, in a user namespace" : "nobody, in a user namespace"),
    { ...enforced("environment", "nothing of the host's"), by: "execve" },
  ];
}

function enforced(name: string, detail = ""): Mechanism {
  return create(MechanismSchema, { name, state: MechanismState.ENFORCED, by: "gVisor", detail });
}

function lacking(name: string, detail: string): Mechanism {
  return create(MechanismSchema, { name, state: MechanismState.NOT_ENFORCED, by: "gVisor", detail });
}
