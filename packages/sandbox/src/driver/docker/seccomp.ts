import { syscalls } from "@caisson/contract/syscalls";

/** What the guest does before it seals itself, and no command after that. */
const beforeTheSeal = [
  "capget",
  "capset",
  "chown",
  "chroot",
  "clone",
  "clone3",
  "fsconfig",
  "fsmount",
  "fsopen",
  "fspick",
  "landlock_add_rule",
  "landlock_create_ruleset",
  "landlock_restrict_self",
  "mount",
  "mount_setattr",
  "move_mount",
  "open_tree",
  "pivot_root",
  "prctl",
  "seccomp",
  "sethostname",
  "setgid",
  "setgroups",
  "setns",
  "setresgid",
  "setresuid",
  "setuid",
  "umount2",
  "unshare",
];

/** What the container's own runtime needs between the filter and the guest's start. */
const forTheRuntime = [
  "arch_prctl",
  "execve",
  "fchmod",
  "fchmodat",
  "mkdirat",
  "openat",
  "open",
  "stat",
  "lstat",
  "access",
];

/** An ABI that is not named here would be answered by death; the guest's own filter refuses foreign ones with an error. */
const architectures: Partial<Record<NodeJS.Architecture, string[]>> = {
  x64: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
  arm64: ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
};

/**
 * The container's filter: what commands may call, and what the guest needs to build its wall. The guest's own filter,
 * which looks at arguments too, comes on top of it before the first command.
 */
export function seccompProfile(): string {
  const names = [...new Set([...syscalls, ...beforeTheSeal, ...forTheRuntime])].sort();
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    architectures: architectures[process.arch] ?? [],
    syscalls: [{ names, action: "SCMP_ACT_ALLOW" }],
  });
}
