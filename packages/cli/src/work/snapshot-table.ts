import type { Snapshot } from "@caisson/client";
import type { Printer } from "../text/printer.ts";
import { formatAge, formatSize } from "../text/units.ts";

/** Snapshots as people read them, or as JSON. */
export async function printSnapshots(print: Printer, snapshots: Snapshot[], json: boolean): Promise<void> {
  if (json) return print.json(snapshots);
  const rows = snapshots.map((snapshot) => [
    snapshot.id,
    print.safe(snapshot.template || "-"),
    snapshot.driver,
    snapshot.memory ? "memory" : "files",
    formatSize(snapshot.size),
    formatAge(snapshot.createdAt),
    snapshot.sandboxId,
    print.safe(snapshot.workspace?.dir || "-"),
  ]);
  await print.table(["ID", "TEMPLATE", "DRIVER", "HOLDS", "SIZE", "AGE", "BOX", "WORKSPACE"], rows);
}
