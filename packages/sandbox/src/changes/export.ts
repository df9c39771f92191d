// Changes in a form that other tools take.
import { CaissonError } from "@caisson/contract";
import type { LayerChange } from "@caisson/contract/keeper";
import { binaryPatch } from "./binary-patch.ts";
import { type Layer, place, scan, sinceOf } from "./changes.ts";
import { matcher } from "./glob.ts";
import { withoutIgnored } from "./ignored.ts";
import { runJob } from "./job.ts";
import { textPatch } from "./patch.ts";
import { sectionsOf } from "./sections.ts";

/** Files up to this size can stand in a patch. */
const contentBytes = 16n << 20n;

export interface ExportOptions {
  format: "patch" | "tar";
  paths: readonly string[];
  hideIgnored: boolean;
}

export async function* exportChanges(layer: Layer, options: ExportOptions): AsyncGenerator<Uint8Array> {
  if (options.format === "tar") yield* asArchive(layer, options);
  else yield* asPatch(layer, options);
}

async function* asPatch(layer: Layer, options: ExportOptions): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const change of chosen(layer, options, { content: contentBytes, binary: true })) {
    const path = Buffer.from(change.path).toString("utf8");
    // No tool takes patches of git's own files.
    if (path.split("/").includes(".git")) continue;
    for (const section of sectionsOf(change)) {
      const patch = (await textPatch(section))?.text ?? binaryPatch(section);
      if (patch === undefined) {
        const words = `${path.slice(0, 200)} does not fit into a patch; export an archive`;
        throw new CaissonError("TOO_LARGE", words);
      }
      if (patch !== "") yield encoder.encode(patch);
    }
  }
}

async function* asArchive(layer: Layer, options: ExportOptions): AsyncGenerator<Uint8Array> {
  const paths: Uint8Array[] = [];
  for await (const change of chosen(layer, options, { content: 0n })) {
    paths.push(change.path);
    // In an archive a rename is what it was before somebody paired them.
    if (change.from.length > 0) paths.push(change.from);
  }
  const value = { paths, attachedAtNs: sinceOf(layer).attachedAtNs };
  for await (const item of runJob(layer.guest, { ...place(layer), job: { case: "export", value } }))
    if ("data" in item) yield item.data;
}

function chosen(
  layer: Layer,
  { paths, hideIgnored }: ExportOptions,
  options: { content: bigint; binary?: boolean },
): AsyncIterable<LayerChange> {
  const matches = matcher(paths);
  const matching = (async function* () {
    for await (const change of scan(layer, options))
      if (matches(Buffer.from(change.path).toString("utf8"))) yield change;
  })();
  return hideIgnored ? withoutIgnored(layer, matching) : matching;
}
