import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CaissonError, WorkspaceMode, WorkspaceSchema } from "@caisson/contract";
import { Mount_Kind } from "@caisson/contract/link";
import { makeLayer, resolveWorkspace, workspaceMounts } from "./workspace.ts";

function scratch() {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "caisson-workspace-")));
  const home = join(dir, "home");
  const project = join(dir, "project");
  mkdirSync(home);
  mkdirSync(project, { mode: 0o755 });
  return { dir, home, project, [Symbol.dispose]: () => rmSync(dir, { recursive: true }) };
}

const at = (dir: string, mode: WorkspaceMode = WorkspaceMode.UNSPECIFIED) =>
  create(WorkspaceSchema, { dir, mode });
const refused = (rule: string) => (error: unknown) =>
  error instanceof CaissonError &&
  error.code === "WORKSPACE_REFUSED" &&
  error.metadata.rule === `workspace.${rule}`;

test("workspaces that would show or shadow the host are refused with the rule's name", async () => {
  using place = scratch();
  const { dir, home, project } = place;
  mkdirSync(join(home, "sandboxes"));
  writeFileSync(join(dir, "file"), "");
  symlinkSync("/", join(project, "root"));
  symlinkSync(home, join(dir, "link"));
  const cases: [string, string][] = [
    ["/", "root"],
    [join(project, "root"), "root"],
    ["/proc", "kernel"],
    ["/proc/self", "kernel"],
    ["/dev/shm", "kernel"],
    ["/sys/kernel", "kernel"],
    [homedir(), "home"],
    [home, "data"],
    [join(dir, "link"), "data"],
    [dir, "data"],
    [join(home, "sandboxes"), "data"],
    ["/etc", "system"],
    ["/usr", "system"],
    [join(dir, "file"), "directory"],
    [join(dir, "nothing"), "exists"],
    ["project", "absolute"],
  ];
  for (const [path, rule] of cases) {
    await assert.rejects(resolveWorkspace(at(path), home), refused(rule), `${path} should break ${rule}`);
  }
});

test("a project is an overlay unless it says otherwise", async () => {
  using place = scratch();
  const { home, project, dir } = place;
  assert.equal((await resolveWorkspace(at(project), home)).mode, WorkspaceMode.OVERLAY);
  assert.equal((await resolveWorkspace(at(project, WorkspaceMode.BIND), home)).mode, WorkspaceMode.BIND);
  assert.equal((await resolveWorkspace(undefined, home)).dir, "");
  assert.equal((await resolveWorkspace(at(""), home)).mode, WorkspaceMode.NONE);
  await assert.rejects(resolveWorkspace(at(project, WorkspaceMode.NONE), home), /its mode is none/);
  symlinkSync(project, join(dir, "alias"));
  assert.equal((await resolveWorkspace(at(join(dir, "alias")), home)).dir, project);
});

test("an overlay gets the project read-only below a layer of its own", async () => {
  using place = scratch();
  const workspace = await resolveWorkspace(at(place.project), place.home);
  makeLayer(join(place.dir, "sb"));
  const { sources, mounts } = workspaceMounts(workspace, join(place.dir, "sb"), true);
  assert.deepEqual(
    mounts.map((mount) => mount.kind),
    [Mount_Kind.LOWER, Mount_Kind.UPPER],
  );
  assert.deepEqual(
    sources.map((source) => source.readOnly),
    [true, false],
  );
  assert.ok(sources.every((source) => source.mapOwner) && sources[0]!.refuseNested);
  assert.equal(mounts[0]!.inode, statSync(place.project, { bigint: true }).ino);
  assert.equal(statSync(join(place.dir, "sb/layer/upper")).mode & 0o777, 0o755);
  const bind = workspaceMounts({ ...workspace, mode: WorkspaceMode.BIND }, join(place.dir, "other"), false);
  assert.deepEqual(
    bind.mounts.map((mount) => [mount.kind, mount.readOnly]),
    [[Mount_Kind.BIND, true]],
  );
});
