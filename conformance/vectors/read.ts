// Reads the vectors. They are plain JSON, for every language; a text may be given in parts to keep the files short.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A text, or parts of one: texts and repeated texts. */
export type Text = string | (string | { repeat: string; times: number })[];

export function textOf(text: Text): string {
  if (typeof text === "string") return text;
  return text.map((part) => (typeof part === "string" ? part : part.repeat.repeat(part.times))).join("");
}

/** The list `cases` of a file. */
export function readVectors<T>(file: string): T[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")).cases;
}
