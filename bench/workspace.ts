// What it costs to work on a project through a sandbox, beside working on it directly.
// `--quick` takes projects a tenth as large.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Box, WorkspaceMode } from "@caisson/client";
import { startDaemon } from "./support/daemon.ts";
import { interleave, median } from "./support/measure.ts";
import { progress, Report } from "./support/report.ts";

const quick = process.argv.includes("--quick");
const rounds = quick ? 5 : 9;
const scale = quick ? 0.1 : 1;
const report = new Report();
const scratch = mkdtempSync(join(tmpdir(), "caisson-bench-workspace-"));
const daemon = await startDaemon({}, join(scratch, "home"));
const { client } = daemon;

const large = makeProject("large", 100_000 * scale, 20 << 10);
const small = makeProject("small", 1000, 20 << 10);
await attach();
await diff();
await copy();
await apply();
await git();
await daemon.stop();
rmSync(scratch, { recursive: true });
report.print();

/** Files of this size, a hundred to a directory. */
function makeProject(name: string, files: number, size: number): string {
  progress(`making a project of ${files} files …`);
  const dir = join(scratch, name);
  for (let i = 0; i < files; i++) {
    const sub = join(dir, `d${Math.floor(i / 10_000)}`, `d${Math.floor(i / 100) % 100}`);
    if (i % 100 === 0) mkdirSync(sub, { recursive: true });
    writeFileSync(
      join(sub, `f${i}.txt`),
      `file ${i}\n`.padEnd(size, "text of a file that has some length\n"),
    );
  }
  return dir;
}

function box(dir: string, mode: WorkspaceMode = "overlay"): Promise<Box> {
  return client.create({ workspace: { dir, mode } });
}

async function sh(at: Box, script: string): Promise<void> {
  const { code, stderr } = await at.run(["sh", "-c", script]);
  if (code !== 0) throw new Error(stderr.text);
}

async function attach(): Promise<void> {
  const times = await interleave(
    {
      none: () => client.run(["true"], {}),
      overlay: () => client.run(["true"], { spec: { workspace: { dir: large, mode: "overlay" } } }),
    },
    rounds * 5,
    { pauseMs: 50 },
  );
  report.add({
    what: `a run with a project of ${100_000 * scale} files as overlay`,
    value: median(times.overlay),
    unit: "ms",
    versus: "the same without a workspace",
    ratio: median(times.overlay) / median(times.none),
    want: "<=",
    target: 1.2,
  });
}

async function diff(): Promise<void> {
  const touch = `find . -name '*.txt' | head -n 100 | while read f; do echo changed >> "$f"; done`;
  const [inLarge, inSmall] = [await box(large), await box(small)];
  await sh(inLarge, touch);
  await sh(inSmall, touch);
  const times = await interleave(
    {
      large: () => inLarge.workspace.diff({ patch: true }),
      small: () => inSmall.workspace.diff({ patch: true }),
    },
    rounds * 2,
  );
  report.add({
    what: `diff after touching 100 of ${100_000 * scale} files`,
    value: median(times.large),
    unit: "ms",
    versus: "of 1,000 files",
    ratio: median(times.large) / median(times.small),
    want: "<=",
    target: 1.2,
  });
  await Promise.all([inLarge.delete(), inSmall.delete()]);
}

async function copy(): Promise<void> {
  const files = 20_000 * scale;
  const project = makeProject("copied-from", files, 20 << 10);
  const target = join(scratch, "copied");
  const times = await interleave(
    {
      ours: async () => {
        const began = performance.now();
        const made = await box(project, "copy");
        const took = performance.now() - began;
        await made.delete();
        return took;
      },
      cp: async () => {
        const began = performance.now();
        execFileSync("cp", ["-a", project, target]);
        const took = performance.now() - began;
        rmSync(target, { recursive: true });
        return took;
      },
    },
    5,
    { warmup: 1 },
  );
  report.add({
    what: `a sandbox with a copy of ${files} files`,
    value: median(times.ours),
    unit: "ms",
    versus: "the speed of cp -a",
    ratio: median(times.cp) / median(times.ours),
    want: ">=",
    target: 0.7,
  });
}

async function apply(): Promise<void> {
  const files = 10_000 * scale;
  const project = makeProject("applied", files, 4 << 10);
  const changed = join(scratch, "changed");
  const mirrored = join(scratch, "mirrored");
  const edit = `find . -name '*.txt' -exec sh -c 'for f; do echo changed >> "$f"; done' sh {} +`;
  execFileSync("cp", ["-a", project, changed]);
  execFileSync("cp", ["-a", project, mirrored]);
  execFileSync("sh", ["-c", edit], { cwd: changed });
  const at = await box(project);
  await sh(at, edit);
  const times = await interleave(
    {
      ours: async () => {
        const began = performance.now();
        const { applied } = await at.workspace.apply();
        const took = performance.now() - began;
        if (applied !== files) throw new Error(`${applied} of ${files} were applied`);
        await at.workspace.undo();
        return took;
      },
      rsync: async () => {
        const began = performance.now();
        execFileSync("rsync", ["-a", `${changed}/`, `${mirrored}/`]);
        const took = performance.now() - began;
        execFileSync("rsync", ["-a", `${project}/`, `${mirrored}/`]);
        return took;
      },
    },
    rounds,
    { warmup: 1 },
  );
  report.add({
    what: `apply of ${files} changed files`,
    value: median(times.ours),
    unit: "ms",
    versus: "the speed of rsync -a",
    ratio: median(times.rsync) / median(times.ours),
    want: ">=",
    target: 0.5,
    note: "ours is on disk when it returns, and can be taken back",
  });
  await at.delete();
}

async function git(): Promise<void> {
  const project = makeProject("repository", 20_000 * scale, 1 << 10);
  const run = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=bench", "-c", "user.email=bench@localhost", ...args], {
      cwd: project,
    });
  run("init", "--quiet");
  run("add", ".");
  run("commit", "--quiet", "--message", "all");
  const at = await box(project);
  await sh(at, "git status");
  const status = async (where: Box) => {
    const { code, stderr } = await where.run(["git", "status", "--short"]);
    if (code !== 0) throw new Error(stderr.text);
  };
  const times = await interleave(
    { inside: () => status(at), outside: async () => run("status", "--short") },
    rounds * 3,
  );
  report.add({
    what: `git status of ${20_000 * scale} files inside`,
    value: median(times.inside),
    unit: "ms",
    versus: "outside",
    ratio: median(times.inside) / median(times.outside),
    want: "<=",
    target: 1.3,
    note: "overlayfs by itself: 1.4; git's cache of untracked files weighs it up",
  });
  await at.delete();
  // The index was made outside: comparing owners and inodes would make this read every file.
  const first = await interleave(
    {
      inside: async () => {
        const fresh = await box(project);
        const began = performance.now();
        await status(fresh);
        const took = performance.now() - began;
        await fresh.delete();
        return took;
      },
      outside: async () => run("status", "--short"),
    },
    rounds,
  );
  report.add({
    what: "the first git status in a sandbox",
    value: median(first.inside),
    unit: "ms",
    versus: "outside",
    ratio: median(first.inside) / median(first.outside),
    want: "<=",
    target: 3,
  });
}
