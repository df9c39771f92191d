// Bringing the changes of an ended sandbox up to what the project is now.
import { readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { ApplyOutcome } from "@caisson/contract";
import { type AppliedInit, contentBytes, gitIndex, type Layer, place, scan } from "./changes.ts";
import { runJob } from "./job.ts";
import { Merger } from "./merge.ts";

const fileName = "rebased.json";

/** What a rebase left, beside the layer: when it was, and where it could not join the versions. */
export interface RebaseRecord {
  atMs: number;
  /** In base 64: names need not be text. */
  except: string[];
}

export function readRebase(layerDir: string): RebaseRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(layerDir, fileName), "utf8"));
  } catch {
    return undefined;
  }
}

/** Merges what both sides changed. The project is not touched; what cannot be merged stays in conflict. */
export async function rebaseChanges(layer: Layer): Promise<AppliedInit[]> {
  // What is changed from here on is not taken into account.
  const atMs = Date.now();
  const merger = new Merger(layer);
  const files: AppliedInit[] = [];
  const items: { path: Uint8Array; content: Uint8Array }[] = [];
  const except: string[] = [];
  for await (const change of scan(layer, { content: contentBytes, conflictsOnly: true })) {
    if (!change.conflict) continue;
    const path = Buffer.from(change.path).toString("utf8");
    if (path === gitIndex && (await merger.nothingStaged())) continue;
    const content = await merger.merge(path, change);
    if (content) {
      items.push({ path: change.path, content });
      files.push({ path: change.path, outcome: ApplyOutcome.MERGED });
    } else {
      except.push(Buffer.from(change.path).toString("base64"));
      files.push({
        path: change.path,
        outcome: ApplyOutcome.CONFLICT,
        reason: "both sides changed it; the project's version stays, and so does the sandbox's",
      });
    }
  }
  const job = { case: "rebase" as const, value: { items } };
  for await (const _ of runJob(layer.guest, { ...place(layer), job }));
  await keep(layer.dir, { atMs, except });
  return files;
}

/** Whole or not at all: a rebase that is not recorded has changed nothing that it would not change again. */
async function keep(layerDir: string, record: RebaseRecord): Promise<void> {
  const path = join(layerDir, fileName);
  await using file = await open(`${path}.new`, "w", 0o600);
  await file.writeFile(JSON.stringify(record));
  await file.sync();
  await rename(`${path}.new`, path);
}
