// Which changes the project's `.gitignore` files name.
import { type LayerChange, LayerFileType } from "@caisson/contract/keeper";
import { git, type Project } from "./git.ts";

const batch = 2000;

/** Passes on what is not ignored, in the same order. Without a repository, nothing is. */
export async function* withoutIgnored<T extends LayerChange>(
  project: Project,
  changes: AsyncIterable<T>,
): AsyncGenerator<T> {
  let pending: T[] = [];
  for await (const change of changes) {
    pending.push(change);
    if (pending.length < batch) continue;
    yield* await kept(project, pending);
    pending = [];
  }
  yield* await kept(project, pending);
}

async function kept<T extends LayerChange>(project: Project, changes: T[]): Promise<T[]> {
  if (changes.length === 0) return [];
  // Behind `./` nothing in a name means anything to git; a slash says that it is a directory, there or not.
  const names = changes.map((change) =>
    Buffer.concat([Buffer.from("./"), change.path, Buffer.from(isDirectory(change) ? "/" : "")]),
  );
  const input = Buffer.concat(names.flatMap((name) => [name, Buffer.of(0)]));
  // It ends with 1 when nothing is ignored, and prints nothing either way.
  const output = await git(project, ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"], { input });
  if (output === undefined) return changes;
  const ignored = new Set(output.toString("latin1").split("\0"));
  return changes.filter((_, index) => !ignored.has(names[index]!.toString("latin1")));
}

function isDirectory({ old, new: now }: LayerChange): boolean {
  return (now ?? old)?.type === LayerFileType.DIRECTORY;
}
