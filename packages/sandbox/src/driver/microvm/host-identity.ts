import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { versionsOf } from "./template.ts";

/** What a saved machine depends on beside what its description names: the processor, and the programs that play it. */
export async function hostIdentity(programs: readonly string[]): Promise<string> {
  const text = await readFile("/proc/cpuinfo", "latin1");
  const fields = ["vendor_id", "model name", "flags"].map((name) => fieldOf(text, name));
  return hash("sha256", JSON.stringify([process.arch, fields, await versionsOf(programs)])).slice(0, 32);
}

/** Of the first processor; they are all alike to a machine. */
function fieldOf(text: string, name: string): string | undefined {
  return new RegExp(`^${name}\\s*: (.*)$`, "m").exec(text)?.[1];
}
