import { readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** A file's text, or empty if it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export function readNumber(path: string): number {
  const value = Number.parseInt(readText(path), 10);
  return Number.isFinite(value) ? value : 0;
}

/** A bound on processes as it is written: a number, or none. */
export function readPids(path: string): number | "max" {
  const text = readText(path).trim();
  return /^\d+$/.test(text) ? Number(text) : "max";
}

/** The number behind a word in a file of `word number` lines. */
export function readField(path: string, word: string): number {
  for (const line of readText(path).split("\n")) {
    const [name, value] = line.split(" ");
    if (name === word) return Number(value);
  }
  return 0;
}

export function writeValue(path: string, value: number | string): void {
  writeFileSync(path, String(value));
}

export function canWrite(path: string, value: string): boolean {
  try {
    writeFileSync(path, value);
    return true;
  } catch {
    return false;
  }
}

export function listDirectories(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

export function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Sandboxes live in it.
  }
}

/** Five seconds or so in all. */
const maxWaitMs = 2048;

/** The kernel says "busy" for a moment after the last process is gone. */
export async function removeGroup(path: string): Promise<void> {
  for (let wait = 2; ; wait *= 2) {
    try {
      await rmdir(path);
      return;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT") return;
      if (code !== "EBUSY" || wait > maxWaitMs) throw error;
    }
    await sleep(wait);
  }
}
