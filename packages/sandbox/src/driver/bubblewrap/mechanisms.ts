import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";

/** What bubblewrap and the keeper enforce by themselves; the guest reports what it does when it seals. */
export function bubblewrapMechanisms(hasOwnUid: boolean): Mechanism[] {
  const identity = hasOwnUid
    ? "an unused uid per sandbox, dropped to before bubblewrap"
    : "the daemon's own uid, which is not the host's root";
  return [
    ...["user", "pid", "network", "ipc", "uts", "cgroup", "mount"].map((kind) =>
      enforced(`namespace.${kind}`),
    ),
    enforced("root", "a private tmpfs; everything else is a mount on it"),
    enforced("devices", "null, zero, full, random, urandom, tty and private terminals"),
    { ...enforced("uid", identity), by: hasOwnUid ? "setresuid" : "daemon" },
    { ...enforced("environment", "nothing of the host's"), by: "execve" },
  ];
}

function enforced(name: string, detail = ""): Mechanism {
  return create(MechanismSchema, { name, state: MechanismState.ENFORCED, by: "bwrap", detail });
}
