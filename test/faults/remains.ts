// What a daemon has left on the host, looked for from outside.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { controlGroupsOf } from "../support/control-groups.ts";
import type { TestDaemon } from "../support/daemon.ts";

/** Sockets, mounts, control groups and directories of a stopped daemon whose sandboxes were all forgotten. */
export function remainsOf(home: string): string[] {
  return [
    ...socketsOf(home),
    ...mountsOf(home),
    ...controlGroupsOf(home).map((path) => `control group ${path}`),
    ...directoriesOf(home),
  ];
}

/** A guest that lives holds its listening socket, whoever it runs as and whatever its parent is. */
function socketsOf(home: string): string[] {
  return readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .filter((line) => line.includes(`${home}/`))
    .map((line) => `socket ${line.split(" ").at(-1)}`);
}

function mountsOf(home: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n");
        return mounts
          .filter((line) => line.includes(`${home}/sandboxes`))
          .map((line) => `mount of ${pid}: ${line}`);
      } catch {
        return [];
      }
    });
}

function directoriesOf(home: string): string[] {
  return readdirSync(join(home, "sandboxes")).map((id) => `directory ${id}`);
}

/** Ends and forgets every sandbox, stops the daemon in order, and says what is left. */
export async function remainsAfter(daemon: TestDaemon): Promise<string[]> {
  const { connect } = await import("@caisson/client");
  {
    await using client = await connect({ socket: daemon.socket });
    for await (const { id } of client.sandboxes.list({ all: true })) {
      await client.sandboxes.delete(id, { forget: true });
    }
  }
  const gone = new Promise((resolve) => daemon.child.once("exit", resolve));
  daemon.child.kill("SIGTERM");
  await gone;
  return remainsOf(daemon.home);
}
