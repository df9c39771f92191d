// Worktrees that were made inside. What they consist of leads git elsewhere, so only those pass whose files say exactly what
// git itself writes for a worktree in this project, and it is that text which is applied.
import { existsSync } from "node:fs";
import { join } from "node:path";

/** What of a worktree, in `.git/worktrees/NAME`, holds no settings. */
const harmlessNames = /^(HEAD|ORIG_HEAD|index|logs|logs\/HEAD|COMMIT_EDITMSG)$/;

/** Reads the contents of small text files that changed, by their paths. */
type ReadSmall = () => AsyncIterable<{ path: string; content: Uint8Array | undefined }>;

export class Worktrees {
  /** Names of worktrees, each with the text of the files that lead from one place to the other. */
  readonly #texts = new Map<string, string>();
  readonly #names = new Set<string>();

  /** Costs nothing where the sandbox has written no worktree. */
  static async read(projectDir: string, layerDir: string, small: ReadSmall): Promise<Worktrees> {
    const found = new Worktrees();
    if (!existsSync(join(layerDir, "upper/.git/worktrees"))) return found;
    const contents = new Map<string, string>();
    for await (const { path, content } of small()) {
      const matters =
        /^\.git\/worktrees\/[^/]+\/(commondir|gitdir)$/.test(path) || /^(?!\.git\/).+\/\.git$/.test(path);
      if (matters && content) contents.set(path, Buffer.from(content).toString("latin1"));
    }
    for (const path of contents.keys()) found.#judge(projectDir, path, contents);
    return found;
  }

  #judge(projectDir: string, path: string, contents: ReadonlyMap<string, string>): void {
    const name = /^\.git\/worktrees\/([A-Za-z0-9][A-Za-z0-9._-]*)\/gitdir$/.exec(path)?.[1];
    if (name === undefined) return;
    const admin = `.git/worktrees/${name}`;
    const gitdir = contents.get(path)!;
    const tree = gitdir.startsWith(`${projectDir}/`)
      ? gitdir.slice(projectDir.length + 1, -"/.git\n".length)
      : "";
    const plain =
      tree !== "" && tree.split("/").every((part) => !["", ".", "..", ".git"].includes(part.toLowerCase()));
    const expected = new Map([
      [path, `${projectDir}/${tree}/.git\n`],
      [`${admin}/commondir`, "../..\n"],
      [`${tree}/.git`, `gitdir: ${projectDir}/${admin}\n`],
    ]);
    if (!plain || [...expected].some(([file, text]) => contents.get(file) !== text)) return;
    this.#names.add(name);
    for (const [file, text] of expected) this.#texts.set(file, text);
  }

  /** May this path pass although it belongs to git? */
  passes(path: string): boolean {
    if (this.#names.size === 0) return false;
    if (this.#texts.has(path) || path === ".git/worktrees") return true;
    const [, name, rest] = /^\.git\/worktrees\/([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
    return name !== undefined && this.#names.has(name) && (rest === undefined || harmlessNames.test(rest));
  }

  /** What is applied in place of whatever the sandbox has made of it since. */
  content(path: string): Buffer | undefined {
    const text = this.#texts.get(path);
    return text === undefined ? undefined : Buffer.from(text, "latin1");
  }
}
