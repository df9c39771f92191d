import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { CaissonError } from "@caisson/contract";
import type { EngineContext } from "../context.ts";
import type { Engine } from "../engine.ts";
import { readyBox } from "../find.ts";
import { messageOf } from "../list.ts";
import { kinds } from "../records.ts";
import { pauseBox, resumeBox } from "./pause.ts";
import { allSnapshots, findSnapshot, snapshotDir, toSnapshot } from "./record.ts";
import { takeSnapshot } from "./take.ts";

/** Sandboxes that hold still, are kept, and are made again. */
export function engineSnapshots(context: EngineContext, engine: Pick<Engine, "create">): Engine["snapshots"] {
  return {
    async pause(sandboxId, call) {
      const box = await readyBox(context, sandboxId);
      await pauseBox(context, box, call.actor);
      return messageOf(context, box.record);
    },
    async resume(sandboxId, call) {
      const box = await readyBox(context, sandboxId);
      await resumeBox(context, box, call.actor);
      return messageOf(context, box.record);
    },
    async take(sandboxId, options, call) {
      const { record } = await takeSnapshot(context, await readyBox(context, sandboxId), options, call.actor);
      return toSnapshot(record);
    },
    list: (templates) =>
      allSnapshots(context)
        .filter(({ template }) => !templates || template !== "")
        .map(toSnapshot),
    get: (name) => toSnapshot(findSnapshot(context, name)),
    async remove(name, call) {
      const record = findSnapshot(context, name);
      const data = { snapshot: record.id, template: record.template };
      await context.commit(
        [{ type: "snapshot.deleted", actor: call.actor, sandboxId: record.sandbox.id, data }],
        [{ remove: kinds.snapshot, key: record.id }],
      );
      await context.parts.trees.remove(snapshotDir(context, record.id));
      return toSnapshot(record);
    },
    async *export(name) {
      const record = findSnapshot(context, name);
      const dir = snapshotDir(context, record.id);
      await writeFile(`${dir}/snapshot.json`, JSON.stringify(record), { mode: 0o600 });
      const child = spawn("/usr/bin/tar", ["--sparse", "-cf", "-", "-C", dir, "."], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      try {
        for await (const piece of child.stdout) yield piece as Buffer;
        if ((await ended) !== 0) throw new CaissonError("INTERNAL", "the snapshot could not be packed");
      } finally {
        child.kill();
      }
    },
    async fork(sandboxId, count, call) {
      const box = await readyBox(context, sandboxId);
      const memory = box.launched?.saveMachine !== undefined;
      const options = { memory, template: "", labels: {}, fleeting: true };
      const { record, isNew } = await takeSnapshot(context, box, options, call.actor);
      try {
        const made: Awaited<ReturnType<Engine["create"]>>[] = [];
        for (let number = 0; number < count; number++) {
          made.push(await engine.create({ snapshot: record.id }, { key: "", wait: true }, call));
        }
        return made;
      } finally {
        // It was only made for the copies.
        if (isNew) await this.remove(record.id, call).catch(() => {});
      }
    },
  };
}
