import { open } from "node:fs/promises";
import type { Ended } from "@caisson/contract/keeper";

/** What the launch log may add to a sentence. */
const quotedLogBytes = 400;

/** The guest's steps, by the code that it exits with when one fails (spec/link.md). */
const steps = new Map([
  [70, "its start"],
  [71, "mounts"],
  [72, "network"],
  [73, "descriptors"],
  [74, "user namespaces"],
  [75, "identity"],
  [76, "capabilities"],
  [77, "privileges"],
  [78, "Landlock"],
  [79, "seccomp"],
  [80, "its check of itself"],
]);

/** The step at which a guest that exits with this code has failed. */
export function stepOf(code: number): string | undefined {
  return steps.get(code);
}

/** One sentence for people: how it ended, and the last words where there were some. */
export async function describeEnd(
  { code, signal }: Pick<Ended, "code" | "signal">,
  log: string,
): Promise<string> {
  if (signal !== 0) return `the sandbox's outer process was killed by signal ${signal}`;
  if (code === 0) return "the guest left by itself";
  if (code < 0) return "the sandbox is gone";
  // Bubblewrap and runsc pass on its child's signal as shells do.
  if (code > 128) return `the guest was killed by signal ${code - 128}`;
  const step = steps.get(code);
  const words = await readLog(log);
  const ended = step === undefined ? `the sandbox ended with code ${code}` : `the guest failed at ${step}`;
  return words === "" ? ended : `${ended}: ${words}`;
}

/** The log's end without the keeper's own line; read in a bounded way. */
async function readLog(path: string): Promise<string> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(quotedLogBytes),
      position: Math.max(0, size - quotedLogBytes),
    });
    return buffer
      .toString("utf8", 0, bytesRead)
      .replace(/^launched [0-9]+ [0-9]+\n/, "")
      .replace(/[\p{Cc}\s]+/gu, " ")
      .trim();
  } catch {
    return "";
  }
}
