import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { CaissonError } from "@caisson/contract";
import { isSettingKey, type SettingKey, settings } from "./settings.ts";

const maxBytes = 1 << 20;

export interface ConfigFile {
  path: string;
  sha256: string;
  /** The document as it was written. */
  tree: Record<string, unknown>;
}

/** Reads a YAML file; undefined if there is none. */
export async function readConfigFile(path: string): Promise<ConfigFile | undefined> {
  let text: string;
  try {
    text = await readRegular(path);
  } catch (error) {
    if (error instanceof CaissonError) throw error;
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw new CaissonError("CONFIG_INVALID", `${path} cannot be read`, { cause: error });
  }
  const { parse } = await import("yaml");
  let tree: unknown;
  try {
    tree = parse(text, { maxAliasCount: 16 }) ?? {};
  } catch (error) {
    const line = (error as { linePos?: [{ line: number }] }).linePos?.[0]?.line;
    throw new CaissonError("CONFIG_INVALID", `${path} is not valid YAML${line ? ` (line ${line})` : ""}`, {
      cause: error,
    });
  }
  if (typeof tree !== "object" || tree === null || Array.isArray(tree)) {
    throw new CaissonError("CONFIG_INVALID", `${path} must be a table of settings`);
  }
  return {
    path,
    sha256: createHash("sha256").update(text).digest("hex"),
    tree: tree as Record<string, unknown>,
  };
}

/** A project's file may be anybody's: a FIFO would be waited for, and a device read, without end. */
async function readRegular(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!(await file.stat()).isFile())
      throw new CaissonError("CONFIG_INVALID", `${path} is not a regular file`);
    const buffer = Buffer.allocUnsafe(maxBytes + 1);
    let length = 0;
    for (let read = 1; read > 0 && length < buffer.length; length += read) {
      ({ bytesRead: read } = await file.read(buffer, length, buffer.length - length, length));
    }
    if (length > maxBytes) throw new CaissonError("CONFIG_INVALID", `${path} is larger than 1 MiB`);
    return buffer.toString("utf8", 0, length);
  } finally {
    await file.close();
  }
}

/** A nested document as dotted settings; a key that is none is an error with a suggestion. */
export function flatten(file: ConfigFile): Map<SettingKey, unknown> {
  const found = new Map<SettingKey, unknown>();
  const walk = (value: unknown, key: string): void => {
    if (isSettingKey(key)) {
      found.set(key, value);
      return;
    }
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      if (key === "" || Object.keys(settings).some((known) => known.startsWith(`${key}.`))) {
        for (const [name, inner] of Object.entries(value)) walk(inner, key === "" ? name : `${key}.${name}`);
        return;
      }
    }
    const near = nearest(key, Object.keys(settings));
    throw new CaissonError(
      "CONFIG_INVALID",
      `${file.path}: there is no setting ${key}${near ? `; did you mean ${near}?` : ""}`,
    );
  };
  walk(file.tree, "");
  return found;
}

/** The known word within two edits, if any. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = 3;
  for (const candidate of known) {
    const distance = editDistance(word, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
