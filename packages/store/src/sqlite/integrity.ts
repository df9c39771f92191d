import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { corruptLog, isCorrupt } from "./errors.ts";

/** Beyond this size only the log's end is checked at the start; `verify` checks the rest on request. */
const quickCheckBytes = 16 * 1024 * 1024;

/** Looks for damage before anything is built on the log. */
export function checkIntegrity(db: DatabaseSync, file: string): void {
  try {
    if (statSync(file).size <= quickCheckBytes) {
      const finding = db.prepare("PRAGMA quick_check(1)").get()?.quick_check;
      if (finding !== "ok")
        throw corruptLog("the log's database is damaged; stop and follow docs/recovery.md");
    }
  } catch (error) {
    if (isCorrupt(error))
      throw corruptLog("the log's database is damaged; stop and follow docs/recovery.md", error);
    throw error;
  }
}
