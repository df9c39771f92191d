import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, copyFileSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import { lockDirectory } from "../lock/index.ts";
import { openSqliteStore } from "./index.ts";
import { scratch } from "./testing/scratch.ts";

const event = { type: "test.x", actor: "test", data: { text: "x".repeat(300) } };
const codeIs = (code: string) => (error: unknown) => error instanceof CaissonError && error.code === code;

test("a database that another process has locked is waited for, then refused, then used again", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  const other = new DatabaseSync(place.file);
  other.exec("BEGIN IMMEDIATE");
  let settled = false;
  const waiting = store.commit([event]).finally(() => {
    settled = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(settled, false);
  assert.match(store.trouble() ?? "", /locked/);
  assert.deepEqual(store.read({ from: 0 }), []);
  other.exec("ROLLBACK");
  assert.equal((await waiting)[0]?.seq, 1);
  other.exec("BEGIN IMMEDIATE");
  await assert.rejects(store.commit([event]), codeIs("UNAVAILABLE"));
  other.exec("ROLLBACK");
  assert.equal((await store.commit([event]))[0]?.seq, 2);
  other.close();
  await store.close();
});

test("a changed event is found when the log is opened and by verify", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  for (let n = 0; n < 20; n++) await store.commit([event]);
  await store.close();
  const forger = new DatabaseSync(place.file);
  forger.exec(`UPDATE event SET data = '{"text":"other"}' WHERE seq = 7`);
  forger.close();
  await assert.rejects(
    openSqliteStore({ file: place.file }),
    (error) => codeIs("CORRUPT_LOG")(error) && /event 7/.test(String(error)),
  );
});

test("flipped bits in the database are found when it is opened", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  for (let n = 0; n < 200; n++) await store.commit([event]);
  await store.close();
  const fd = openSync(place.file, "r+");
  for (let at = 4096; at < statSync(place.file).size; at += 4096)
    writeSync(fd, Buffer.alloc(64, 0xff), 0, 64, at);
  closeSync(fd);
  await assert.rejects(openSqliteStore({ file: place.file }), codeIs("CORRUPT_LOG"));
  writeFileSync(place.file, "this is not a database, but it is long enough to be looked at".repeat(100));
  await assert.rejects(openSqliteStore({ file: place.file }), codeIs("CORRUPT_LOG"));
});

test("a flipped bit in the write-ahead log of a killed daemon is found", async () => {
  using place = scratch();
  const store = await openSqliteStore({ file: place.file });
  for (let n = 0; n < 20; n++) await store.commit([event]);
  // As a SIGKILL leaves it: the log is not folded into the database.
  const copy = join(place.dir, "copy.db");
  copyFileSync(place.file, copy);
  for (const suffix of ["-wal", "-boot"]) copyFileSync(place.file + suffix, copy + suffix);
  await store.close();
  const bytes = readFileSync(`${copy}-wal`);
  bytes[Math.floor(bytes.length / 2)]! ^= 0x10;
  writeFileSync(`${copy}-wal`, bytes);
  await assert.rejects(openSqliteStore({ file: copy }), codeIs("CORRUPT_LOG"));
});

test("a log of a newer format is refused", async () => {
  using place = scratch();
  const db = new DatabaseSync(place.file);
  db.exec("PRAGMA user_version = 99");
  db.close();
  await assert.rejects(openSqliteStore({ file: place.file }), codeIs("VERSION_MISMATCH"));
});

test("a second daemon on one directory is told who holds it; the holder's death frees it", () => {
  using place = scratch();
  const file = join(place.dir, "daemon.lock");
  const lock = lockDirectory(file);
  const script = `import { lockDirectory } from ${JSON.stringify(join(import.meta.dirname, "../lock/index.ts"))};
    try { lockDirectory(${JSON.stringify(file)}); console.log("locked"); process.kill(process.pid, "SIGKILL"); }
    catch (error) { console.log(error.message); }`;
  const second = () => {
    try {
      return execFileSync(process.execPath, ["--input-type=module-typescript", "-e", script], {
        encoding: "utf8",
      });
    } catch (error) {
      return String((error as { stdout: string }).stdout);
    }
  };
  assert.match(second(), new RegExp(`another daemon \\(pid ${process.pid}\\)`));
  lock.release();
  assert.match(second(), /^locked/);
  lockDirectory(file).release();
});
