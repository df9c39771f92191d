import { readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { type Finding, FindingLevel, FindingSchema } from "@caisson/contract";
import type { Driver } from "../driver/driver.ts";
import type { FoundCgroups } from "../limits/index.ts";

export interface DoctorParts {
  drivers: readonly Driver[];
  cgroups: FoundCgroups;
  /** The data directory. */
  home: string;
  /** What does not work at the moment, by subject. */
  troubles: ReadonlyMap<string, string>;
}

const { OK, WARNING, PROBLEM } = FindingLevel;
const GiB = 1024 ** 3;

/** Looks for what is missing on this machine and says what mends it. */
export async function diagnose(parts: DoctorParts): Promise<Finding[]> {
  return [
    ...(await driverFindings(parts.drivers)),
    userNamespaces(),
    landlock(),
    controlGroups(parts.cgroups),
    await diskSpace(parts.home),
    ...[...parts.troubles].map(([subject, message]) => finding(subject, PROBLEM, message)),
  ];
}

/** One usable driver is enough to work; what the others lack is only worth knowing. */
async function driverFindings(drivers: readonly Driver[]): Promise<Finding[]> {
  const probes = await Promise.all(drivers.map((driver) => driver.probe()));
  const level = probes.some(({ usable }) => usable) ? WARNING : PROBLEM;
  return drivers.map((driver, index) => {
    const { usable, reason = "it did not say why", fix } = probes[index]!;
    const subject = `driver ${driver.name}`;
    return usable ? finding(subject, OK, "usable") : finding(subject, level, reason, fix);
  });
}

/** The kernel's switches; whether they really work, the drivers have tried. */
function userNamespaces(): Finding {
  const subject = "user namespaces";
  const most = read("/proc/sys/user/max_user_namespaces");
  if (most === "0") {
    return finding(
      subject,
      PROBLEM,
      "user namespaces are switched off",
      "sudo sysctl -w user.max_user_namespaces=15000",
    );
  }
  if (read("/proc/sys/kernel/unprivileged_userns_clone") === "0") {
    return finding(
      subject,
      PROBLEM,
      "ordinary users may not make user namespaces",
      "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    );
  }
  if (read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return finding(
      subject,
      process.getuid?.() === 0 ? WARNING : PROBLEM,
      "AppArmor restricts user namespaces of programs without a profile",
      "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    );
  }
  return finding(subject, OK, "allowed");
}

function landlock(): Finding {
  const modules = read("/sys/kernel/security/lsm");
  if (modules === undefined)
    return finding("Landlock", OK, "not known: securityfs is not mounted; the guest asks the kernel itself");
  if (modules.split(",").includes("landlock")) return finding("Landlock", OK, "active");
  return finding(
    "Landlock",
    WARNING,
    "the kernel runs without Landlock: sandboxes lack one layer, and their reports say so",
    `add lsm=landlock,${modules} to the kernel's command line and restart`,
  );
}

function controlGroups(found: FoundCgroups): Finding {
  const subject = "control groups";
  if (!found.cgroups) {
    const uid = process.getuid?.() ?? 0;
    return finding(
      subject,
      WARNING,
      `${found.reason}: memory is bounded by a watcher, processes by rlimit, processors not at all`,
      uid === 0
        ? "mount -t cgroup2 none /sys/fs/cgroup"
        : `sudo loginctl enable-linger ${uid} && sudo systemctl set-property user@${uid}.service Delegate=yes`,
    );
  }
  const { controls, by } = found.cgroups;
  const missing = Object.entries(controls)
    .filter(([, there]) => !there)
    .map(([name]) => name);
  if (missing.length === 0)
    return finding(subject, OK, `${by}: memory, processes and processors are bounded`);
  return finding(
    subject,
    WARNING,
    `${by} without the controllers ${missing.join(", ")}: those limits are bounded by other means or not at all`,
  );
}

async function diskSpace(home: string): Promise<Finding> {
  const { bavail, bsize, ffree } = await statfs(home);
  const free = bavail * bsize;
  const words = `${(free / GiB).toFixed(1)} GiB free for the log, layers and output`;
  if (free < 0.2 * GiB || ffree < 1000) return finding("disk", PROBLEM, words, "caisson prune");
  return free < 2 * GiB ? finding("disk", WARNING, words, "caisson prune") : finding("disk", OK, words);
}

function finding(subject: string, level: FindingLevel, message: string, fix = ""): Finding {
  return create(FindingSchema, { subject, level, message, fix });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
