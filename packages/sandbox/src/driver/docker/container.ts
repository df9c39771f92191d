import { join } from "node:path";
import type { LimitValues } from "../../limits/index.ts";
import type { HostEntry } from "../bubblewrap/host-root.ts";
import { engineBounds } from "./group.ts";
import { inside } from "./image.ts";

/** Labels by which containers of ours are found again, whatever became of the daemon that made them. */
export const labels = {
  /** The data directory. */
  home: "caisson.home",
  sandbox: "caisson.sandbox",
  /** Of the daemon's process: others may be leftovers. */
  daemon: "caisson.daemon",
} as const;

export interface Ulimit {
  Name: string;
  Soft: number;
  Hard: number;
}

export interface ContainerParts {
  image: string;
  dir: string;
  guest: string;
  uid: number;
  gid: number;
  hostRoot: readonly HostEntry[];
  labels: Record<string, string>;
  isPodman: boolean;
  isRootless: boolean;
  ulimits: readonly Ulimit[];
  /** The filter, or the file that it is in. */
  seccomp: string;
  /** The engine puts AppArmor's profile around containers, which forbids every mount. */
  hasAppArmor: boolean;
  /** What the engine bounds it to; undefined: it cannot. */
  limits: LimitValues | undefined;
}

/** Where the engine is not asked for the sandbox's own bound: more than any of them. */
const pidsLimit = 32_768;

/** What the engine is asked for: no network, no capability, no root, nothing writable but the guest's door. */
export function containerBody(parts: ContainerParts) {
  const binds = parts.hostRoot.flatMap((entry) =>
    entry.kind === "bind" ? [bind(entry.source, inside.shown + entry.path, true)] : [],
  );
  return {
    Image: parts.image,
    // An engine without root has a user namespace around its containers, in which its own user is root.
    User: parts.isRootless ? "0:0" : `${parts.uid}:${parts.gid}`,
    Entrypoint: [inside.guest, "container", "--listen", `${inside.door}/link.sock`],
    Cmd: [],
    Env: [],
    WorkingDir: "/",
    Hostname: "caisson",
    // Stopped by its engine it has nothing to say: whatever ends the guest ends all.
    StopSignal: "SIGKILL",
    Labels: parts.labels,
    NetworkDisabled: true,
    HostConfig: {
      NetworkMode: "none",
      CapDrop: ["ALL"],
      // Without it the root of a user namespace may not be the root of one below; the guest gives it up at its seal.
      ...(parts.isRootless ? { CapAdd: ["SETFCAP"] } : {}),
      Privileged: false,
      ReadonlyRootfs: true,
      SecurityOpt: [
        "no-new-privileges",
        `seccomp=${parts.seccomp}`,
        ...(parts.isPodman ? ["unmask=ALL"] : []),
        ...(parts.hasAppArmor ? ["apparmor=unconfined"] : []),
      ],
      // A proc file system with covers cannot be mounted anew; the guest covers its own.
      MaskedPaths: [],
      ReadonlyPaths: [],
      IpcMode: "private",
      PidsLimit: pidsLimit,
      ...(parts.limits ? engineBounds(parts.limits) : {}),
      Ulimits: parts.ulimits,
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      Init: false,
      Mounts: [
        ...binds,
        bind(parts.guest, inside.guest, true),
        bind(join(parts.dir, "door"), inside.door, false),
      ],
    },
  };
}

function bind(source: string, target: string, readOnly: boolean) {
  return { Type: "bind", Source: source, Target: target, ReadOnly: readOnly };
}

/** The socket that the guest makes. */
export function doorOf(dir: string): string {
  return join(dir, "door", "link.sock");
}
