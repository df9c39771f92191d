import type { EngineContext } from "../context.ts";
import type { Engine } from "../engine.ts";
import { readyBox } from "../find.ts";
import { messageOf } from "../list.ts";
import { kinds } from "../records.ts";
import { exportSnapshot } from "./export.ts";
import { pauseBox, resumeBox } from "./pause.ts";
import { inTurn } from "./place.ts";
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
      const { record } = await takeSnapshot(context, await readyBox(context, sandboxId), options, call);
      return toSnapshot(record);
    },
    list: (templates) =>
      allSnapshots(context)
        .filter(({ template }) => !templates || template !== "")
        .map(toSnapshot),
    get: (name) => toSnapshot(findSnapshot(context, name)),
    remove: (name, call) =>
      inTurn(context, async () => {
        const record = findSnapshot(context, name);
        const data = { snapshot: record.id, template: record.template };
        // The sandbox of an imported one was never here.
        const sandboxId = record.imported ? "" : record.sandbox.id;
        await context.commit(
          [{ type: "snapshot.deleted", actor: call.actor, sandboxId, data }],
          [{ remove: kinds.snapshot, key: record.id }],
        );
        await context.parts.trees.remove(snapshotDir(context, record.id));
        return toSnapshot(record);
      }),
    export: (name) => exportSnapshot(context, name),
    async import(archive, options, call) {
      const { importSnapshot } = await import("./import.ts");
      return toSnapshot(await importSnapshot(context, archive, options, call));
    },
    async fork(sandboxId, count, call) {
      const box = await readyBox(context, sandboxId);
      const memory = box.launched?.saveMachine !== undefined;
      const options = { memory, template: "", labels: {}, fleeting: true };
      const { record, isNew } = await takeSnapshot(context, box, options, call);
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
