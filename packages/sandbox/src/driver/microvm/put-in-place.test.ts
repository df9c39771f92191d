import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { putInPlace } from "./put-in-place.ts";

test("what cannot be put in place because it is there already is dropped; anything else is told", async () => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-place-"));
  try {
    const [made, place] = [join(dir, "made"), join(dir, "place")];
    writeFileSync(made, "1");
    await putInPlace(made, place);
    assert.equal(readFileSync(place, "utf8"), "1");
    // Nobody can put a file in the place of a directory, as little as in that of somebody else's file in a shared one.
    mkdirSync(join(dir, "taken"));
    writeFileSync(made, "2");
    await putInPlace(made, join(dir, "taken"));
    assert.equal(existsSync(made), false);
    await assert.rejects(putInPlace(made, join(dir, "nowhere/place")), { code: "ENOENT" });
  } finally {
    rmSync(dir, { recursive: true });
  }
});
