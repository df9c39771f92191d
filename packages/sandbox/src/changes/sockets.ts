import { runJob } from "./job.ts";

/** The first sockets in a directory, by name. */
export async function findSockets(guest: string, dir: string): Promise<string[]> {
  const found: string[] = [];
  const job = { case: "sockets" as const, value: { most: 3 } };
  // It reads the project only; any directory will do for the layer.
  for await (const item of runJob(guest, { lower: dir, layer: "", job }))
    if ("outcome" in item) found.push(Buffer.from(item.outcome.path).toString("utf8"));
  return found;
}
