import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { CaissonError } from "@caisson/contract";
import type { EngineContext } from "../context.ts";
import { documentName, documentOf } from "./document.ts";
import { unfinished } from "./place.ts";
import { findSnapshot, snapshotDir, snapshotsDir } from "./record.ts";

/** A snapshot as one tar archive: the document first, then its files. The same one gives the same bytes. */
export async function* exportSnapshot(context: EngineContext, name: string): AsyncGenerator<Buffer> {
  const record = findSnapshot(context, name);
  // Beside the snapshot, which stays as it was kept.
  const beside = `${snapshotsDir(context)}/${unfinished}${randomUUID()}`;
  await mkdir(beside, { mode: 0o700 });
  try {
    await writeFile(`${beside}/${documentName}`, JSON.stringify(documentOf(record)), { mode: 0o600 });
    yield* pack([beside, documentName], [snapshotDir(context, record.id), "."], record.createdAt);
  } finally {
    await context.parts.trees.remove(beside).catch(() => {});
  }
}

/** Directories, each with what is taken of it. Nothing in the archive says who made it, or when. */
async function* pack(one: [string, string], other: [string, string], at: number): AsyncGenerator<Buffer> {
  const anybody = ["--owner=0", "--group=0", "--numeric-owner", `--mtime=@${Math.floor(at / 1000)}`];
  const manner = ["--sparse", "--sort=name", `--exclude=./${documentName}`, ...anybody];
  const what = [one, other].flatMap(([dir, name]) => ["-C", dir, name]);
  const child = spawn("/usr/bin/tar", [...manner, "-cf", "-", ...what], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { LC_ALL: "C" },
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  try {
    for await (const piece of child.stdout) yield piece as Buffer;
    if ((await ended) !== 0) throw new CaissonError("INTERNAL", "the snapshot could not be packed");
  } finally {
    child.kill();
  }
}
