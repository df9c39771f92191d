// Files that would run code outside the sandbox later, without anybody asking for it. Inside they may be
// written freely; apply withholds them unless they are named.

/** Why a changed path is withheld, or undefined. `path` is relative to the project. */
export function withheld(path: string): string | undefined {
  const parts = path.split("/");
  const git = parts.findIndex((part) => part.toLowerCase() === ".git");
  if (git > 0) return "it belongs to a repository inside the project";
  if (git === 0) return insideGit(parts.slice(1));
  for (const part of parts) {
    const reason = names.get(part.toLowerCase());
    if (reason) return reason;
  }
  return undefined;
}

const shell = "a shell reads it when it starts";
const editor = "an editor may run what it names";
const agent = "an agent's client acts on it";

const names = new Map<string, string>([
  ...[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".inputrc"].map(because(shell)),
  ...[".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".envrc"].map(because(shell)),
  ...[".vscode", ".idea", ".devcontainer", ".exrc", ".vimrc", ".nvimrc"].map(because(editor)),
  ...[".mcp.json", ".claude", ".codex", ".gemini", ".cursor", ".opencode"].map(because(agent)),
  [".gitmodules", "git fetches from where it points"],
  [".husky", "it holds hooks for git"],
  [".npmrc", "npm takes programs and registries from it"],
  [".yarnrc", "yarn takes a program from it"],
  [".yarnrc.yml", "yarn takes a program from it"],
  ["caisson.yaml", "it is this project's own configuration"],
]);

function because(reason: string): (name: string) => [string, string] {
  return (name) => [name, reason];
}

/** In `.git` only what commits, branches and refs are made of may pass; `config`, `hooks` and the like may not. */
function insideGit(parts: string[]): string | undefined {
  if (parts.length === 0) return undefined;
  const [first, ...rest] = parts;
  const passes =
    (gitFiles.has(first!) && rest.length === 0) ||
    (gitTrees.has(first!) && !(first === "objects" && rest[0] === "info" && rest.length > 1));
  return passes ? undefined : "git on the host would act on it";
}

const gitFiles = new Set([
  "HEAD",
  "ORIG_HEAD",
  "FETCH_HEAD",
  "MERGE_HEAD",
  "MERGE_MSG",
  "MERGE_MODE",
  "CHERRY_PICK_HEAD",
  "REVERT_HEAD",
  "COMMIT_EDITMSG",
  "index",
  "packed-refs",
]);

const gitTrees = new Set(["objects", "refs", "logs"]);
