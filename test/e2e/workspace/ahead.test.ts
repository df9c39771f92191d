// Walls that are closed before anybody asks: used once, by who asks for the same, and blind to nothing on the host.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Box } from "@caisson/client";
import { accounts } from "../../support/daemon.ts";
import { eventually } from "../../support/eventually.ts";
import { makeProject, type Project, type Subject, subject } from "./project.ts";

for (const account of accounts()) {
  describe(`walls closed ahead, as ${account.name}`, { timeout: 200_000 }, () => {
    let at: Subject;
    before(async () => {
      at = await subject(account);
    });
    after(() => at[Symbol.asyncDispose]());

    const create = (project: Project, env: Record<string, string> = {}) =>
      at.client.create({ workspace: { dir: project.dir, mode: "overlay" }, env });
    const says = async (box: Box, script: string) => {
      const { code, stdout, stderr } = await box.run(["bash", "-ec", script]);
      assert.equal(code, 0, stderr.text);
      return stdout.text;
    };
    /** The sandbox that is closed around the project already and that nobody has. */
    const ahead = async (project: Project) => {
      const living = new Set<string>();
      for await (const { id } of at.client.sandboxes.list()) living.add(id);
      return readdirSync(join(at.daemon.home, "sandboxes"))
        .filter(
          (place) => !living.has(place) && guestMounts(at.daemon.home, place).includes(` ${project.dir} `),
        )
        .at(0);
    };
    /** The guest has told the daemon before it makes a monitor ready; one call later the daemon has read that. */
    const closed = async (project: Project) => {
      const place = await eventually(
        () => ahead(project),
        (found) => found !== undefined,
      );
      await ahead(project);
      return place;
    };

    it("serves the next who asks for the same, once", async () => {
      using project = makeProject(account, "echo one > file");
      const mounts = hostMounts();
      await using first = await create(project);
      const place = await closed(project);
      await using second = await create(project);
      if (hostMounts() === mounts) assert.equal(second.id, place);
      assert.equal(await says(second, "cat file; echo two > file; cat file"), "one\ntwo\n");
      assert.equal(await says(first, "cat file"), "one\n");
      await closed(project);
      await using third = await create(project);
      assert.notEqual(third.id, second.id);
      assert.equal(await says(third, "cat file"), "one\n");
    });

    it("shows what the host changed after it was closed", async () => {
      using project = makeProject(
        account,
        "mkdir -p deep/er gone swapped; echo old > deep/er/file; echo old > file; echo old > replaced; echo x > swapped/x; ln -s file link",
      );
      const mounts = hostMounts();
      await using _first = await create(project);
      const place = await closed(project);
      project.sh(
        `echo new > file; echo new > fresh; rm -r gone; echo new > next; mv next replaced
         rm -r deep; mkdir -p deep/er; echo new > deep/er/file
         mv swapped kept; mkdir swapped; echo y > swapped/y; ln -sfn fresh link; chmod 640 fresh`,
      );
      await using second = await create(project);
      if (hostMounts() === mounts) assert.equal(second.id, place);
      const seen = await says(
        second,
        "cat file fresh replaced deep/er/file link; ls; ls swapped kept; stat -c %a fresh",
      );
      const own = project.sh(
        "cat file fresh replaced deep/er/file link; ls; ls swapped kept; stat -c %a fresh",
      );
      assert.equal(seen, own);
    });

    it("is not given to who asks for something else, or for another directory of that name", async () => {
      using project = makeProject(account, "echo one > file");
      await using _first = await create(project);
      const place = await closed(project);
      await using other = await create(project, { MARK: "other" });
      assert.notEqual(other.id, place);
      assert.equal(await says(other, "echo $MARK"), "other\n");
      // What was asked for last is expected next.
      await eventually(
        () => ahead(project),
        (now) => now !== undefined && now !== place,
      );
      project.sh(
        `cd .. && mv ${project.dir} ${project.dir}.old && mkdir ${project.dir} && echo two > ${project.dir}/file`,
      );
      await using moved = await create(project, { MARK: "other" });
      assert.equal(await says(moved, "cat file"), "two\n");
      project.sh(`rm -r ${project.dir}.old`);
    });
  });
}

/** Where something was mounted meanwhile, as other tests do, nothing is given out that was closed before. */
function hostMounts(): string {
  return readFileSync("/proc/self/mountinfo", "utf8");
}

/** What the guest of a place sees mounted, once it waits for its first command; nothing where it is gone. */
function guestMounts(home: string, place: string): string {
  try {
    const log = readFileSync(join(home, "sandboxes", place, "launch.log"), "utf8");
    const [guest = ""] = childrenOf(/launched (\d+)/.exec(log)?.[1] ?? "");
    return childrenOf(guest).length > 0 ? readFileSync(`/proc/${guest}/mountinfo`, "utf8") : "";
  } catch {
    return "";
  }
}

function childrenOf(pid: string): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
}
