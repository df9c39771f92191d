// https://doc.rust-lang.org/cargo/reference/config.html: the project's file beats the user's; crates-io can be replaced
// by another source, and further registries can be named.
import { join } from "node:path";
import { downloadsOf } from "./cargo-downloads.ts";
import { isInnerAddress, Places, ruleOfUrl, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { readProjectText, readText } from "./read.ts";
import { cargoConfig } from "./told.ts";
import { askFor } from "./tool.ts";

interface ConfigFile {
  tree: Record<string, unknown>;
  path: string;
  project: boolean;
}

interface Index {
  url: string;
  from: string;
  project?: boolean;
  /** With cargo's mark of its protocol. */
  marked?: string;
}

export const cargo: Preset = async (source) => {
  const places = new Places("cargo");
  const files = await configFiles(source, places.notes);
  const indexes: Index[] = [];
  const replaced = replacementIn(files, places.notes);
  if (replaced === "own") {
    const said = await askCargo(source);
    places.addOwn(said, "cargo fetch");
    for (const url of said ?? []) indexes.push({ url, from: "cargo fetch" });
  } else if (replaced) indexes.push(replaced);
  const told: Record<string, string> = {};
  for (const { tree, path, project } of files) {
    for (const [name, registry] of Object.entries(table(tree.registries))) {
      const { index } = table(registry);
      if (typeof index !== "string") continue;
      indexes.push({ url: plain(index), from: path, project });
      if (!project) told[name] = shown(index);
    }
  }
  // Files of the project are inside anyway.
  const replacement =
    replaced && replaced !== "own" && replaced.marked && !replaced.project
      ? { registry: shown(replaced.marked) }
      : undefined;
  places.files.push(...cargoConfig({ replacement, registries: told }));
  for (const [name, value] of Object.entries(source.env)) {
    if (!/^CARGO_REGISTRIES_[A-Z0-9_]+_INDEX$/.test(name) || !value) continue;
    places.env[name] = shown(value);
    indexes.push({ url: plain(value), from: `variable ${name}` });
  }
  for (const index of indexes) await addIndex(places, index, source, replaced === "own");
  return places.resolved;
};

async function addIndex(places: Places, { url, from, project }: Index, source: PresetSource, own: boolean) {
  const byTool = own && from === "cargo fetch";
  if (!byTool && !places.add(url, from, project)) return;
  // Nobody is asked because a project says so.
  const downloads = project ? undefined : await downloadsOf(url, cargoHomeOf(source));
  if (downloads && (ruleOfUrl(downloads) === ruleOfUrl(url) || !isInnerAddress(downloads)))
    places.add(downloads, `config.json of ${new URL(url).host}`, false, byTool);
  else if (!project) places.notes.push(`${new URL(url).host} did not say where its crates lie`);
}

/** Follows `replace-with` from crates-io; `own` if it leads nowhere, undefined if it needs no network. */
function replacementIn(files: readonly ConfigFile[], notes: string[]): Index | "own" | undefined {
  let name = "crates-io";
  // A chain that turns back to itself ends here.
  for (let step = 0; step < 16; step++) {
    const found = files.map((file) => ({ ...file, entry: table(table(file.tree.source)[name]) }));
    const file = found.find(({ entry }) => Object.keys(entry).length > 0);
    if (!file) return "own";
    const { entry, path: from, project } = file;
    if (typeof entry["replace-with"] === "string") name = entry["replace-with"];
    else if (typeof entry.registry === "string")
      return { url: plain(entry.registry), marked: entry.registry, from, project };
    else if (typeof entry.git === "string") return { url: plain(entry.git), from, project };
    // A directory or a local registry needs no network.
    else if (typeof entry.directory === "string" || typeof entry["local-registry"] === "string")
      return undefined;
    else return "own";
  }
  notes.push("the sources of cargo's configuration replace each other in a circle");
  return undefined;
}

/** Cargo has no command for it: set a task, it names the index that it could not reach through a proxy that is not there. */
function askCargo(source: PresetSource): Promise<string[] | undefined> {
  const manifest =
    '[package]\nname = "ask"\nversion = "0.0.0"\n[lib]\npath = "lib.rs"\n[dependencies]\ncaisson-ask = "1"\n';
  return askFor(
    /failed to (?:download from|fetch) `(https?:[^`]+?)(?:config\.json)?`/g,
    {
      argv: ["cargo", "fetch"],
      files: { "Cargo.toml": manifest, "lib.rs": "" },
      env: { CARGO_HTTP_PROXY: "http://127.0.0.1:1", CARGO_NET_RETRY: "0", CARGO_TERM_COLOR: "never" },
    },
    source,
  );
}

function cargoHomeOf({ home, env }: PresetSource): string {
  return env.CARGO_HOME || join(home, ".cargo");
}

async function configFiles(source: PresetSource, notes: string[]): Promise<ConfigFile[]> {
  const { project } = source;
  const candidates = [
    ...(project
      ? [".cargo/config.toml", ".cargo/config"].map((name) => ({ path: join(project, name), project: true }))
      : []),
    ...["config.toml", "config"].map((name) => ({ path: join(cargoHomeOf(source), name), project: false })),
  ];
  const { parse } = await import("smol-toml");
  const files: ConfigFile[] = [];
  for (const candidate of candidates) {
    const text = await (candidate.project ? readProjectText : readText)(candidate.path);
    if (text === undefined) continue;
    try {
      files.push({ ...candidate, tree: parse(text) });
    } catch {
      notes.push(`${candidate.path} is not valid TOML`);
    }
  }
  return files;
}

/** Cargo marks the protocol of an index in front of its URL. */
function plain(url: string): string {
  return url.replace(/^(sparse|registry)\+/, "");
}

/** As the sandbox may see it: the mark, and no user or password. */
function shown(index: string): string {
  const url = plain(index);
  const mark = index.slice(0, index.length - url.length);
  return URL.canParse(url) ? mark + withoutCredentials(url) : index;
}

function table(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
