import { open } from "node:fs/promises";
import type { Ended } from "@caisson/contract/keeper";

/** What the log may add to a sentence. */
const quotedLogBytes = 400;

/** One sentence for people: how it ended, by the last words on the console. */
export async function describeEnd(
  { code, signal }: Pick<Ended, "code" | "signal">,
  log: string,
  vmm: string,
): Promise<string> {
  if (signal !== 0) return `the machine's process was killed by signal ${signal}`;
  if (code < 0) return "the machine is gone";
  const words = await readLog(log);
  const panic = /Kernel panic - not syncing: ([^\n]{1,200})/.exec(words)?.[1];
  if (panic !== undefined) return `the machine's kernel panicked: ${panic.trim()}`;
  const guest = /caisson: (the [^\n]{1,300})\s*$/.exec(words.trim())?.[1];
  if (guest !== undefined) return guest;
  if (code === 0) return "the machine restarted by itself";
  if (code > 128) return `the machine's process was killed by signal ${code - 128}`;
  const last = words
    .trim()
    .replace(/[\p{Cc}\s]+/gu, " ")
    .slice(-quotedLogBytes);
  return last === "" ? `${vmm} ended with code ${code}` : `${vmm} ended with code ${code}: ${last}`;
}

/** The log's end; read in a bounded way. */
export async function readLog(path: string): Promise<string> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const length = 16 * 1024;
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read({ buffer, position: Math.max(0, size - length) });
    return buffer.toString("utf8", 0, bytesRead).replace(/^launched [0-9]+ [0-9]+\n/, "");
  } catch {
    return "";
  }
}
