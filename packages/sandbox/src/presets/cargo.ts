// https://doc.rust-lang.org/cargo/reference/config.html: the project's file beats the user's; crates-io can be replaced
// by another source, and further registries can be named.
import { join } from "node:path";
import { Places } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { readProjectText, readText } from "./read.ts";

interface ConfigFile {
  tree: Record<string, unknown>;
  path: string;
  project: boolean;
}

export const cargo: Preset = async (source) => {
  const places = new Places("cargo");
  const files = await configFiles(source, places.notes);
  if (!addReplacement(places, files)) places.addDefaults();
  for (const { tree, path, project } of files) {
    for (const registry of Object.values(table(tree.registries))) {
      const { index } = table(registry);
      if (typeof index === "string") places.add(plain(index), path, project);
    }
  }
  for (const [name, value] of Object.entries(source.env)) {
    if (!/^CARGO_REGISTRIES_[A-Z0-9_]+_INDEX$/.test(name) || !value) continue;
    if (places.add(plain(value), `variable ${name}`)) places.env[name] = value;
  }
  return places.resolved;
};

/** Follows `replace-with` from crates-io; false if it leads nowhere, so that the default counts. */
function addReplacement(places: Places, files: readonly ConfigFile[]): boolean {
  let name = "crates-io";
  // A chain that turns back to itself ends here.
  for (let step = 0; step < 16; step++) {
    const found = files.map((file) => ({ ...file, entry: table(table(file.tree.source)[name]) }));
    const file = found.find(({ entry }) => Object.keys(entry).length > 0);
    if (!file) return false;
    const { entry, path, project } = file;
    if (typeof entry["replace-with"] === "string") name = entry["replace-with"];
    else if (typeof entry.registry === "string") return places.add(plain(entry.registry), path, project);
    else if (typeof entry.git === "string") return places.add(plain(entry.git), path, project);
    // A directory or a local registry needs no network.
    else return typeof entry.directory === "string" || typeof entry["local-registry"] === "string";
  }
  places.notes.push("the sources of cargo's configuration replace each other in a circle");
  return true;
}

async function configFiles(source: PresetSource, notes: string[]): Promise<ConfigFile[]> {
  const { home, env, project } = source;
  const cargoHome = env.CARGO_HOME || join(home, ".cargo");
  const candidates = [
    ...(project
      ? [".cargo/config.toml", ".cargo/config"].map((name) => ({ path: join(project, name), project: true }))
      : []),
    ...["config.toml", "config"].map((name) => ({ path: join(cargoHome, name), project: false })),
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

function table(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
