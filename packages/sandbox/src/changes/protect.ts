// Files that would run code outside the sandbox later, without anybody asking for it. Inside they may be
// written freely; apply withholds them unless they are named.

/** One change, as far as it matters here. */
export interface Judged {
  /** Relative to the project. */
  path: string;
  /** What it is now; undefined if it is gone. */
  now: "file" | "directory" | "link" | "other" | undefined;
  /** Of a link: where it leads. */
  target?: string;
}

/** What of the project matters here. */
export interface Protected {
  /** Its absolute path; empty where links out of it are nobody's concern. */
  projectDir: string;
  /** Is there anything at this path of the project, on the host? */
  hasInProject(path: string): boolean;
  /** Where git looks for hooks instead of its own place. */
  hooks?: readonly string[];
  /** Is it part of a worktree that may pass? */
  isWorktree?(path: string): boolean;
}

/** Judges the changes of one project, in the order of their paths. */
export class Protection {
  readonly #project: Protected;
  readonly #hooks: readonly string[];
  #repositoryGone = false;

  constructor(project: Protected) {
    this.#project = project;
    this.#hooks = (project.hooks ?? []).flatMap((path) => inProject(project.projectDir, "", path) ?? []);
  }

  /** Why a change is withheld, or undefined. */
  withheld(change: Judged): string | undefined {
    const parts = change.path.split("/");
    if (change.now !== "link" && change.now !== "other" && this.#project.isWorktree?.(change.path))
      return undefined;
    const git = parts.findIndex((part) => part.toLowerCase() === ".git");
    if (git > 0) return "it belongs to a repository inside the project";
    if (git === 0) return this.#inGit(parts.slice(1), change);
    for (const part of parts) {
      const reason = names.get(part.toLowerCase());
      if (reason) return reason;
    }
    if (this.#hooks.some((hooks) => leadsTo(hooks, change)))
      return "git on the host runs its hooks from there";
    return this.#leavesProject(change) ?? this.#bareRepository(parts, change);
  }

  /** Whoever writes to such a link on the host writes elsewhere. Programs of the system are nobody's to write. */
  #leavesProject({ path, now, target = "" }: Judged): string | undefined {
    if (now !== "link" || this.#project.projectDir === "") return undefined;
    if (systemPrograms.test(target) && !target.split("/").includes("..")) return undefined;
    const parent = path.split("/").slice(0, -1).join("/");
    return inProject(this.#project.projectDir, parent, target) === undefined
      ? "it is a link that leads out of the project"
      : undefined;
  }

  /** In `.git` only what commits, branches and refs are made of may pass; `config`, `hooks` and the like may not, nor may
   * links, nor a `.git` that points elsewhere. */
  #inGit(parts: string[], { now }: Judged): string | undefined {
    if (now === "other" || now === "link" || (now === "file" && parts.length === 0)) return gitActs;
    const [first = "", ...rest] = parts;
    // `.git` and `.git/HEAD` come before what makes up the history.
    if (now === undefined && (parts.length === 0 || (first === "HEAD" && rest.length === 0)))
      this.#repositoryGone = true;
    if (now === undefined && (this.#repositoryGone || first === "objects")) {
      return "git's history is only added to";
    }
    if (parts.length === 0) return undefined;
    if (now === "directory") return gitTrees.has(first) || first === "" ? undefined : gitActs;
    const passes =
      rest.length === 0
        ? gitFiles.has(first) || /^sharedindex\.[0-9a-f]+$/.test(first)
        : gitTrees.has(first) && !(first === "objects" && rest[0] === "info");
    return passes ? undefined : gitActs;
  }

  /** git takes any directory that has a HEAD for a repository, and acts on the settings that lie beside it. */
  #bareRepository(parts: string[], { now }: Judged): string | undefined {
    if (now === undefined) return undefined;
    if (parts.at(-1)!.toLowerCase() === "head") return "git would take its directory for a repository";
    for (let end = 1; end <= parts.length; end++) {
      const name = parts[end - 1]!.toLowerCase();
      if (!bareNames.has(name)) continue;
      if (this.#project.hasInProject([...parts.slice(0, end - 1), "HEAD"].join("/"))) return gitActs;
    }
    return undefined;
  }
}

/** Is the change at this place or below, or does it lead the way there elsewhere? */
function leadsTo(place: string, { path, now }: Judged): boolean {
  // The project itself as the place of hooks: there only the names tell.
  if (place === "") return hookNames.test(path);
  if (path === place || path.startsWith(`${place}/`)) return true;
  return place.startsWith(`${path}/`) && (now === "link" || now === "other");
}

/** Where a path leads from a directory of the project, by names alone; undefined: out of it. */
function inProject(projectDir: string, parent: string, path: string): string | undefined {
  const absolute = path.startsWith("/");
  if (absolute && path !== projectDir && !path.startsWith(`${projectDir}/`)) return undefined;
  const names = absolute
    ? path.slice(projectDir.length).split("/")
    : [...parent.split("/"), ...path.split("/")];
  const found: string[] = [];
  for (const name of names) {
    if (name === "" || name === ".") continue;
    if (name !== "..") found.push(name);
    else if (found.pop() === undefined) return undefined;
  }
  return found.join("/");
}

/** What interpreters of virtual environments and the like lead to. */
const systemPrograms = /^\/(usr|bin|sbin|lib|lib64|opt)\//;

const hookNames =
  /^((pre|post)-[a-z0-9-]+|(applypatch|prepare-commit|commit)-msg|update|proc-receive|push-to-checkout|reference-transaction|sendemail-validate|fsmonitor-watchman)$/;

const gitActs = "git on the host would act on it";
/** What git runs programs from, or is led to such, in a repository's directory. */
const bareNames = new Set([
  "config",
  "config.worktree",
  "commondir",
  "gitdir",
  "hooks",
  "info",
  "modules",
  "worktrees",
]);

const shell = "a shell reads it when it starts";
const editor = "an editor may run what it names";
const agent = "an agent's client acts on it";

const names = new Map<string, string>([
  ...[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".inputrc"].map(because(shell)),
  ...[".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".envrc"].map(because(shell)),
  ...[".bash_aliases", ".cshrc", ".tcshrc", ".login", ".kshrc"].map(because(shell)),
  ...[".vscode", ".idea", ".devcontainer", ".exrc", ".vimrc", ".nvimrc"].map(because(editor)),
  ...[".nvim.lua", ".lvimrc", ".dir-locals.el", ".zed", ".fleet", ".gdbinit", ".lldbinit"].map(
    because(editor),
  ),
  ...[".mcp.json", ".claude", ".codex", ".gemini", ".cursor", ".opencode"].map(because(agent)),
  ...[".windsurf", ".roo", ".continue", ".kiro", ".aider.conf.yml"].map(because(agent)),
  [".gitmodules", "git fetches from where it points"],
  ...[".husky", ".githooks"].map(because("it holds hooks for git")),
  ...[".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml"].map(
    because("it names what runs at every commit"),
  ),
  ...["rust-toolchain", "rust-toolchain.toml"].map(because("it names the programs that cargo and rustc are")),
  [".cargo", "cargo takes programs from it"],
  [".yarn", "it may hold the program that yarn is"],
  [".pnpmfile.cjs", "pnpm runs it"],
  ["bunfig.toml", "bun takes programs from it"],
  ...["mise.toml", ".mise.toml", ".mise"].map(because("mise acts on it in every shell")),
  [".npmrc", "npm takes programs and registries from it"],
  [".yarnrc", "yarn takes a program from it"],
  [".yarnrc.yml", "yarn takes a program from it"],
  ["caisson.yaml", "it is this project's own configuration"],
]);

function because(reason: string): (name: string) => [string, string] {
  return (name) => [name, reason];
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
  "shallow",
]);

const gitTrees = new Set(["objects", "refs", "logs"]);
