// https://git-scm.com/docs/git-config: the remotes of the project, rewritten by `url.<base>.insteadOf`. Git is not run: a
// repository's own configuration can make it execute programs.
import { dirname, isAbsolute, join, resolve } from "node:path";
import { gitEntries } from "./git-config.ts";
import { Places, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { readProjectText, readText } from "./read.ts";
import { gitVariables } from "./told.ts";

interface Rewrite {
  prefix: string;
  base: string;
}

const deepestInclude = 4;
const mostRewrites = 64;

export const git: Preset = async (source) => {
  const places = new Places("git");
  const repository = await repositoryConfig(source.project);
  const own = [...gitEntries(repository.text)];
  const users = rewritesOf(await userEntries(source));
  const rewrites = [...users, ...rewritesOf(own)];
  const told = users.map(({ prefix, base }) => [`url.${withoutUser(base)}.insteadOf`, prefix] as const);
  Object.assign(places.env, gitVariables(told.slice(0, mostRewrites)));
  for (const { section, subsection, key, value } of own) {
    if (section !== "remote" || (key !== "url" && key !== "pushurl")) continue;
    const url = asUrl(rewrite(value, rewrites));
    if (url) places.add(url, `${repository.path} (${subsection})`, true);
  }
  return places.resolved;
};

/** The project's repository, also of a work tree beside it. */
async function repositoryConfig(project: string): Promise<{ path: string; text: string }> {
  if (!project) return { path: "", text: "" };
  let dir = join(project, ".git");
  const link = /^gitdir:\s*(.+?)\s*$/m.exec((await readProjectText(dir)) ?? "")?.[1];
  if (link) {
    dir = resolve(project, link);
    const common = (await readProjectText(join(dir, "commondir")))?.trim();
    if (common) dir = resolve(dir, common);
  }
  const path = join(dir, "config");
  return { path, text: (await readProjectText(path)) ?? "" };
}

async function userEntries({ home, env, root = "/" }: PresetSource) {
  const files = [
    join(root, "etc/gitconfig"),
    join(env.XDG_CONFIG_HOME || join(home, ".config"), "git/config"),
    env.GIT_CONFIG_GLOBAL || join(home, ".gitconfig"),
  ];
  const lists = await Promise.all(files.map((path) => withIncludes(path, home, 0)));
  return lists.flat();
}

async function withIncludes(path: string, home: string, depth: number): Promise<ReturnType<typeof list>> {
  const entries = list((await readText(path)) ?? "");
  const included =
    depth < deepestInclude
      ? entries.filter(({ section, key }) => section === "include" && key === "path")
      : [];
  const inner = await Promise.all(
    included.map(({ value }) => {
      const named = value.startsWith("~/") ? join(home, value.slice(2)) : value;
      return withIncludes(isAbsolute(named) ? named : join(dirname(path), named), home, depth + 1);
    }),
  );
  return [...entries, ...inner.flat()];
}

function list(text: string) {
  return [...gitEntries(text)];
}

function rewritesOf(
  entries: readonly { section: string; subsection: string; key: string; value: string }[],
): Rewrite[] {
  return entries
    .filter(({ section, key }) => section === "url" && (key === "insteadof" || key === "pushinsteadof"))
    .map(({ subsection, value }) => ({ prefix: value, base: subsection }));
}

/** A base may hold a password; the name before `@` in `git@host:` is none. */
function withoutUser(base: string): string {
  return /^https?:/.test(base) && URL.canParse(base) ? withoutCredentials(base) : base;
}

/** The longest prefix wins. */
function rewrite(url: string, rewrites: readonly Rewrite[]): string {
  const fitting = rewrites.filter(({ prefix }) => prefix !== "" && url.startsWith(prefix));
  const [longest] = fitting.sort((a, b) => b.prefix.length - a.prefix.length);
  return longest ? longest.base + url.slice(longest.prefix.length) : url;
}

/** `git@host:path` as a URL; undefined for what needs no network, or would run a program. */
function asUrl(text: string): string | undefined {
  if (text.includes("::") || text.startsWith("/") || text.startsWith(".") || text.startsWith("file:"))
    return undefined;
  if (text.includes("://")) return text;
  const host = /^(?:[^@/:]+@)?(\[[^\]]+\]|[^/:[\]]+):/.exec(text)?.[1];
  return host && `ssh://${host}/`;
}
