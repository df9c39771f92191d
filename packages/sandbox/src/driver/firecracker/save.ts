import { rm } from "node:fs/promises";
import { takeOut } from "./jail.ts";
import type { Machine } from "./start.ts";

/** All of the memory is written. */
const saveMs = 120_000;

/** Saves a machine that is paused into two new files. It stays paused; its connections to the host are cut. */
export async function keepMachine(
  { api, root }: Pick<Machine, "api" | "root">,
  files: { state: string; memory: string },
): Promise<void> {
  // The names of what it was loaded from are taken, and may be links to what others use.
  const inside = { state: "kept-state", memory: "kept-memory" };
  try {
    await api.put(
      "/snapshot/create",
      {
        snapshot_type: "Full",
        snapshot_path: `/${inside.state}`,
        mem_file_path: `/${inside.memory}`,
      },
      saveMs,
    );
    await takeOut(`${root}/${inside.memory}`, files.memory);
    await takeOut(`${root}/${inside.state}`, files.state);
  } finally {
    for (const name of Object.values(inside)) await rm(`${root}/${name}`, { force: true });
  }
}
