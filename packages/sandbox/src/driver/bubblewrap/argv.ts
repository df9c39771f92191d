import { dirname } from "node:path";
import type { HostEntry } from "./host-root.ts";

/** Where the guest binary is inside a sandbox. */
export const guestPath = "/run/caisson/guest";

/** Private, empty and in memory; the seal bounds their size. */
const privateDirectories: readonly { path: string; mode: string }[] = [
  { path: "/dev/shm", mode: "1777" },
  { path: "/home", mode: "0755" },
  { path: "/run", mode: "0755" },
  { path: "/tmp", mode: "1777" },
  { path: "/var/tmp", mode: "1777" },
];

/**
 * The command that makes an unsealed sandbox: namespaces and generic mounts, nothing of a project.
 * Of the result, `{socket}` and `{guest}` are filled in by the keeper.
 */
export function bubblewrapArgv(bwrap: string, hostRoot: readonly HostEntry[]): string[] {
  return [
    bwrap,
    ...namespaces,
    ...identity,
    ...mounts(hostRoot),
    "--",
    guestPath,
    "init",
    "--listen-fd",
    "{socket}",
  ];
}

/** A sandbox that does nothing, to see whether they can be made here. */
export function trialArgv(bwrap: string, hostRoot: readonly HostEntry[]): string[] {
  const system = hostRoot.filter(({ path }) => !path.startsWith("/etc/"));
  return [
    bwrap,
    ...namespaces,
    ...identity,
    ...system.flatMap(hostEntry),
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--",
    "/bin/true",
  ];
}

/** Each by name: `--unshare-all` goes on without a user or cgroup namespace where it cannot have one. */
const namespaces = [
  "--unshare-user",
  "--unshare-ipc",
  "--unshare-pid",
  "--unshare-net",
  "--unshare-uts",
  "--unshare-cgroup",
];

/**
 * The guest is the namespace's root with all of the namespace's capabilities until it seals itself:
 * it attaches the mounts that are handed in. With another uid, bubblewrap would put `--dev` behind a
 * second user namespace, in which nothing can be mounted later.
 */
const identity = ["--uid", "0", "--gid", "0", "--cap-add", "ALL", "--as-pid-1", "--clearenv", "--chdir", "/"];

function mounts(hostRoot: readonly HostEntry[]): string[] {
  return [
    ...parents([...hostRoot.map((entry) => entry.path), ...privateDirectories.map(({ path }) => path)]),
    ...hostRoot.flatMap(hostEntry),
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    ...privateDirectories.flatMap(({ path, mode }) => ["--perms", mode, "--tmpfs", path]),
    // Read-only, so that nothing inside can change it by way of /proc/self/exe.
    "--dir",
    dirname(guestPath),
    "--ro-bind",
    "{guest}",
    guestPath,
  ];
}

function hostEntry(entry: HostEntry): string[] {
  if (entry.kind === "symlink") return ["--symlink", entry.target, entry.path];
  return ["--ro-bind", entry.source, entry.path];
}

/** Directories that bubblewrap makes by itself on the way to a mount are closed to everybody else. */
function parents(paths: string[]): string[] {
  const found = new Set<string>();
  for (const path of paths) {
    for (let parent = dirname(path); parent !== "/" && parent !== "/dev"; parent = dirname(parent))
      found.add(parent);
  }
  return [...found].sort().flatMap((path) => ["--dir", path]);
}
