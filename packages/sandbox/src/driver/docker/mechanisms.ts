import { create } from "@bufbuild/protobuf";
import { type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";

/** What the engine and the namespaces inside its container enforce; the guest reports what it does when it seals. */
export function dockerMechanisms(
  engine: "docker" | "podman",
  hasOwnUid: boolean,
  hasAppArmor: boolean,
): Mechanism[] {
  const enforced = (name: string, detail = "") =>
    create(MechanismSchema, { name, state: MechanismState.ENFORCED, by: engine, detail });
  const lacking = (name: string, detail: string) =>
    create(MechanismSchema, { name, state: MechanismState.NOT_ENFORCED, by: engine, detail });
  const identity = hasOwnUid
    ? "an unused uid per sandbox"
    : "the daemon's own uid, which is not the host's root";
  const around = "the container's own, and one more inside it";
  return [
    ...["pid", "network", "ipc", "uts", "mount"].map((kind) => enforced(`namespace.${kind}`, around)),
    enforced("namespace.cgroup"),
    enforced("namespace.user", "made by the guest inside the container"),
    enforced(
      "root",
      "a private tmpfs in a read-only container; of the host only programs, libraries and parts of /etc",
    ),
    enforced("devices", "null, zero, full, random, urandom, tty and private terminals"),
    enforced("uid", identity),
    enforced("environment", "nothing of the host's"),
    hasAppArmor
      ? lacking("apparmor", "the engine's profile forbids the mounts of which the guest's root is made")
      : lacking("apparmor", "the engine has none"),
  ];
}
