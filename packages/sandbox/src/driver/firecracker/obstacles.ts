import type { Probe } from "../driver.ts";

/** The release that `fix` names. */
const release = "v1.16.1";

/** What Debian has. */
const packages = {
  bwrap: "bubblewrap",
  "mkfs.erofs": "erofs-utils",
  unshare: "util-linux",
  kernel: "linux-image-cloud-amd64",
} as const;

export type Needed = keyof typeof packages;

const sudo = () => (process.getuid?.() === 0 ? "" : "sudo ");

/** Distributions do not have it. */
export function explainNoFirecracker(missing: readonly string[]): Probe {
  const name = `firecracker-${release}-x86_64`;
  const from = `https://github.com/firecracker-microvm/firecracker/releases/download/${release}/${name}.tgz`;
  const install = ["firecracker", "jailer"].map(
    (program) =>
      `${sudo()}install release-${release}-x86_64/${program}-${release}-x86_64 /usr/local/bin/${program}`,
  );
  return {
    usable: false,
    reason: `${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing`,
    fix: [`curl -fsSL ${from} | tar -xz`, ...install].join(" && "),
  };
}

export function explainMissing(missing: readonly Needed[]): Probe {
  const what = missing.map((name) => (name === "kernel" ? "a kernel for virtual machines" : name));
  return {
    usable: false,
    reason: `${what.join(", ")} ${missing.length === 1 ? "is" : "are"} missing`,
    fix: `${sudo()}apt-get install -y --no-install-recommends ${missing.map((name) => packages[name]).join(" ")}`,
  };
}

export function explainNotRoot(): Probe {
  return {
    usable: false,
    reason: "Firecracker's jailer needs root, and this daemon is an ordinary user's",
    fix: "sudo caisson daemon start",
  };
}

export function explainNoKvm(): Probe {
  return {
    usable: false,
    reason:
      "/dev/kvm cannot be read and written: there is no hardware virtualisation, or its module is not loaded",
    fix: `${sudo()}modprobe -a kvm kvm_intel || ${sudo()}modprobe -a kvm kvm_amd`,
  };
}

export function explainNoBoot(words: string): Probe {
  return {
    usable: false,
    reason: `a machine does not boot with it here: ${words}. It is not tried again before the host's next start`,
  };
}
