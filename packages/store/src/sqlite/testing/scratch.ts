import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory for one test. */
export function scratch(): { dir: string; file: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), "caisson-store-"));
  return {
    dir,
    file: join(dir, "log.db"),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}
