// `runsc run` of `true` on the host's programs, as its users run it.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function plainRunsc(): { argv(): string[]; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), "caisson-bench-runsc-"));
  mkdirSync(join(dir, "root/usr"), { recursive: true });
  for (const name of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${name}`, join(dir, "root", name));
  const config = {
    ociVersion: "1.0.2",
    process: { user: { uid: 0, gid: 0 }, args: ["/bin/true"], env: [], cwd: "/" },
    root: { path: "root", readonly: true },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/usr", type: "bind", source: "/usr", options: ["ro", "rbind"] },
    ],
    linux: { namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })) },
  };
  writeFileSync(join(dir, "config.json"), JSON.stringify(config));
  let count = 0;
  const rootless = process.getuid!() === 0 ? [] : ["--rootless"];
  return {
    argv: () => [
      "runsc",
      ...rootless,
      "--root",
      join(dir, "state"),
      "--platform=ptrace",
      "--network=none",
      "--ignore-cgroups",
      "run",
      "--bundle",
      dir,
      `bench${count++}`,
    ],
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
