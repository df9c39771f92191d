// Requests that a person answers, with a real daemon: by a key's apply and an agent's profile.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Client, connect } from "@caisson/client";
import { self, startDaemon, type TestDaemon, temporaryDirectory } from "../support/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { ending, Launcher } from "../support/launcher.ts";

describe("approvals", { timeout: 120_000 }, () => {
  let daemon: TestDaemon;
  let owner: Client;
  let url: string;
  const project = temporaryDirectory(self());
  before(async () => {
    const home = temporaryDirectory(self());
    writeFileSync(
      join(home, "config.yaml"),
      "approvals: {ask: [apply, profile, write-outside]}\nagents: {codex: {profile: restrictive}}\n",
    );
    daemon = await startDaemon({ home, env: { CAISSON_LISTEN_TCP: "127.0.0.1:0" } });
    owner = await connect({ socket: daemon.socket });
    const address = () => /"address":"(http:[^"]+)"/.exec(daemon.log());
    url = (await eventually(address, (match) => match !== null))![1]!;
  });
  after(async () => {
    await owner.close();
    await daemon[Symbol.asyncDispose]();
    for (const dir of [project, daemon.home]) rmSync(dir, { recursive: true, force: true });
  });

  const pending = async () => {
    const list = () => Array.fromAsync(owner.approvals.list());
    const [approval] = await eventually(list, (found) => found.length === 1);
    return approval!;
  };

  it("lets a key apply changes only when somebody else says so", async () => {
    const write = await owner.keys.create("writer", { scopes: ["read", "write"] });
    const approve = await owner.keys.create("approver", { scopes: ["read", "write", "approve"] });
    const as = (key: { secret: string }) => connect({ url, key: key.secret });
    await using writer = await as(write);
    await using approver = await as(approve);
    const box = await writer.create({ workspace: { dir: project } });
    await box.run(["sh", "-c", "echo made > made"]);
    const refused = assert.rejects(box.workspace.apply(), { code: "APPROVAL_DENIED" });
    const first = await pending();
    assert.deepEqual([first.kind, first.subject, first.requestedBy], ["apply", project, "key:writer"]);
    await assert.rejects(writer.approvals.allow(first.id), { code: "FORBIDDEN" });
    await owner.approvals.deny(first.id);
    await refused;
    const { decidedAt, decidedBy } = await owner.approvals.get(first.id);
    assert.ok(decidedAt && decidedAt >= first.requestedAt!, String(decidedAt));
    assert.match(decidedBy, /^uid:/);
    assert.ok(!existsSync(join(project, "made")));

    await box.run(["sh", "-c", "echo more > more"]);
    const other = await writer.create({ workspace: { dir: project } });
    await other.run(["sh", "-c", "echo other > other"]);
    const allowed = other.workspace.apply();
    await approver.approvals.allow((await pending()).id, { scope: "sandbox" });
    assert.equal((await allowed).applied, 1);
    assert.equal(readFileSync(join(project, "other"), "utf8"), "other\n");
    await other.run(["sh", "-c", "echo again > other"]);
    assert.equal((await other.workspace.apply()).applied, 1, "the answer holds for this sandbox");

    const third = await approver.create({ workspace: { dir: project } });
    await third.run(["sh", "-c", "echo own > own"]);
    assert.equal((await third.workspace.apply()).applied, 1, "who may answer is not asked");
    for (const each of [box, other, third]) await each.delete();
  });

  it("lets a key write what acts outside the project only when somebody else says so", async () => {
    const write = await owner.keys.create("outside", { scopes: ["read", "write"] });
    await using writer = await connect({ url, key: write.secret });
    const box = await writer.create({ workspace: { dir: project } });
    await box.run([
      "sh",
      "-c",
      "echo one > a; mkdir -p .vscode; echo '{}' > .vscode/tasks.json; echo 'x' > .envrc",
    ]);
    const paths = ["a", ".vscode/tasks.json", ".envrc"];
    const applying = box.workspace.apply({ paths });
    await owner.approvals.allow((await pending()).id);
    for (const answer of ["deny", "allow"] as const) {
      const asked = await pending();
      assert.equal(asked.kind, "write-outside");
      assert.equal(asked.subject, join(project, answer === "deny" ? ".envrc" : ".vscode/tasks.json"));
      await owner.approvals[answer](asked.id);
      await eventually(
        () => Array.fromAsync(owner.approvals.list()),
        (found) => found.every(({ id }) => id !== asked.id),
      );
    }
    const { applied, withheld } = await applying;
    assert.deepEqual([applied, withheld], [2, 1]);
    assert.ok(existsSync(join(project, ".vscode/tasks.json")) && !existsSync(join(project, ".envrc")));
    await box.delete();

    const bind = { dir: project, mode: "bind-write" } as const;
    const refused = assert.rejects(writer.create({ workspace: bind }), { code: "APPROVAL_DENIED" });
    const asked = await pending();
    assert.deepEqual([asked.kind, asked.subject], ["write-outside", project]);
    await owner.approvals.deny(asked.id);
    await refused;
  });

  it("asks whether an agent may have another profile than its rule's", async () => {
    const caisson = new Launcher(daemon, project);
    const words = ["run", "--agent", "codex", "--profile", "permissive", "--", "echo", "ran"];
    const running = ending(caisson.start(words));
    const approval = await pending();
    assert.deepEqual([approval.kind, approval.subject, approval.agent], ["profile", "permissive", "codex"]);
    const said = await caisson.run(["approvals", "allow", approval.id, "--always"]);
    assert.equal(said.code, 0, said.err);
    assert.equal((await running).out, "ran\n");
    assert.match(readFileSync(join(daemon.home, "approvals.yaml"), "utf8"), /allow profile permissive/);
    assert.match((await caisson.run(["config", "show"])).out, /approvals\.kept.*allow profile permissive/);
    assert.equal((await caisson.run(words)).out, "ran\n", "the rule answers");
    writeFileSync(join(daemon.home, "approvals.yaml"), "rules: [deny profile permissive]\n");
    const refused = await caisson.run(words);
    assert.equal(refused.code, 125);
    assert.match(refused.err, /refused by rule: deny profile permissive/);
    rmSync(join(daemon.home, "approvals.yaml"));
  });

  it("ends what waits when the daemon dies, and says so", async () => {
    const caisson = new Launcher(daemon, project);
    const running = ending(caisson.start(["run", "--agent", "codex", "--profile", "moderate", "--", "true"]));
    const { id } = await pending();
    await daemon.crash();
    assert.notEqual((await running).code, 0);
    await daemon.restart();
    await owner.close();
    owner = await connect({ socket: daemon.socket });
    assert.equal((await owner.approvals.get(id)).state, "expired");
    await assert.rejects(owner.approvals.allow(id), { code: "APPROVAL_DECIDED" });
  });
});
