import type { Probe } from "../driver.ts";

/** What QEMU microVMs need of the host, and how each is had. */
const packages = {
  bwrap: "bubblewrap",
  "qemu-system-x86_64": "qemu-system-x86",
  "mkfs.erofs": "erofs-utils",
  prlimit: "util-linux",
  kernel: "linux-image-cloud-amd64",
} as const;

export type Needed = keyof typeof packages;

export function explainMissing(missing: readonly Needed[]): Probe {
  const sudo = process.getuid?.() === 0 ? "" : "sudo ";
  const what = missing.map((name) => (name === "kernel" ? "a kernel for virtual machines" : name));
  return {
    usable: false,
    reason: `${what.join(", ")} ${missing.length === 1 ? "is" : "are"} missing`,
    fix: `${sudo}apt-get install -y --no-install-recommends ${missing.map((name) => packages[name]).join(" ")}`,
  };
}
