// Run inside: bounds a group, has something exceed it, and says what the kernel made of that.
import { spawnSync } from "node:child_process";
import { findCgroups } from "../../../packages/sandbox/src/limits/index.ts";
import { noLimits } from "../../../packages/sandbox/src/limits/values.ts";

const MiB = 1024 * 1024;
const found = findCgroups("test");
if (!found.cgroups) throw new Error(found.reason);
const { cgroups } = found;
const group = cgroups.make("sandbox");
await group.configure({ ...noLimits, memoryBytes: 64 * MiB, pids: 20, cpuMillis: 500 });
const joining = group.procs.map((file) => `echo 0 > ${file}`).join("; ");
/** In the group, and what it printed. */
const perl = (script: string) =>
  spawnSync("sh", ["-c", `${joining}; exec perl -e '${script}'`], { encoding: "utf8" });
const { signal } = perl("my @x; for (1..200) { push @x, q(a) x 1048576 }");
const fork = "my $p = fork; last unless defined $p; if (!$p) { sleep 60; exit } push @all, $p;";
const { stdout } = perl(`my @all; for (1..60) { ${fork} } print scalar(@all); kill 9, @all`);
const said = {
  by: cgroups.by,
  controls: cgroups.controls,
  bounds: group.bounds(),
  signal,
  oomKills: group.oomKills(),
  forks: Number(stdout),
};
await group.remove();
cgroups.close();
console.log(`bounded: ${JSON.stringify(said)}`);
