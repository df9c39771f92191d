// Where git on the host takes this project's hooks from.
import { realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { git, type Project } from "./git.ts";

/** As the repository, a worktree, the owner or the machine has it set, in files of theirs and in what those include. */
export async function hooksPlaces(project: Project): Promise<string[]> {
  const query = ["config", "--includes", "--type=path", "--get-all", "core.hooksPath"];
  const said = await git(project, query, { home: await homeOf(project.uid) });
  const places = (said?.toString() ?? "").split("\n").filter(Boolean);
  return places.flatMap((place) => [place, ...behindLinks(project.projectDir, place)]);
}

/** A link of the project's own may stand on the way. */
function behindLinks(projectDir: string, place: string): string[] {
  try {
    const real = realpathSync(isAbsolute(place) ? place : join(projectDir, place));
    const root = realpathSync(projectDir);
    return real === root || real.startsWith(`${root}/`) ? [join(projectDir, real.slice(root.length))] : [];
  } catch {
    return [];
  }
}

async function homeOf(uid: number): Promise<string> {
  if (uid === process.getuid?.()) return process.env.HOME || homedir();
  const users = (await readFile("/etc/passwd", "utf8").catch(() => "")).split("\n");
  return (
    users.map((line) => line.split(":")).find((fields) => fields[2] === String(uid))?.[5] || "/nonexistent"
  );
}
