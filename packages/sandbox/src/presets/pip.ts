// https://pip.pypa.io/en/stable/topics/configuration/: site, user and PIP_CONFIG_FILE files, later ones win, variables
// beat them all; requirement files may name indexes too.
import { join } from "node:path";
import { Places, ruleOfUrl, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { iniEntries, readProjectText, readText } from "./read.ts";
import { askFor } from "./tool.ts";

interface Named {
  urls: string[];
  from: string;
}

export const pip: Preset = async (source) => {
  const places = new Places("pip");
  const { index, extra, links } = await configured(source);
  const understood = index?.urls.filter((url) => places.add(url, index.from)) ?? [];
  const [simple, files] = (await askPip(source)) ?? [];
  if (understood.length === 0 || (simple && understood.some((url) => ruleOfUrl(url) === ruleOfUrl(simple))))
    places.addOwn(simple && files ? [simple, files] : undefined, "pip's own index");
  for (const named of [extra, links])
    for (const url of named?.urls ?? []) if (/^https?:/.test(url)) places.add(url, named!.from);
  for (const { url, from } of await ofRequirements(source.project)) places.add(url, from, true);
  const [main] = understood;
  if (main) places.env.PIP_INDEX_URL = withoutCredentials(main);
  const others = (extra?.urls ?? []).filter((url) => URL.canParse(url));
  if (others.length > 0) places.env.PIP_EXTRA_INDEX_URL = others.map(withoutCredentials).join(" ");
  return places.resolved;
};

/** pip has no command for it, and keeps it in a place of its own: the index, and where that has its files. */
async function askPip(source: PresetSource): Promise<string[] | undefined> {
  const script =
    "from pip._internal.models.index import PyPI; print(PyPI.simple_url); print('https://' + PyPI.file_storage_domain)";
  return askFor(/^(https?:\/\/\S+)$/gm, { argv: ["python3", "-I", "-c", script] }, source);
}

async function configured(source: PresetSource): Promise<{ index?: Named; extra?: Named; links?: Named }> {
  const { home, env, root = "/" } = source;
  const files = env.PIP_CONFIG_FILE === "/dev/null" ? [] : filesOf(home, env, root);
  const found: { index?: Named; extra?: Named; links?: Named } = {};
  const take = (key: string, value: string, from: string) => {
    const urls = value.split(/\s+/).filter(Boolean);
    if (key === "index-url" || key === "index_url") found.index = { urls: urls.slice(0, 1), from };
    else if (key === "extra-index-url" || key === "extra_index_url") found.extra = { urls, from };
    else if (key === "find-links" || key === "find_links") found.links = { urls, from };
  };
  for (const path of files) {
    const text = joinContinued((await readText(path)) ?? "");
    for (const { section, key, value } of iniEntries(text))
      if (["global", "install", "download"].includes(section)) take(key, value, path);
  }
  for (const [name, key] of [
    ["PIP_INDEX_URL", "index-url"],
    ["PIP_EXTRA_INDEX_URL", "extra-index-url"],
    ["PIP_FIND_LINKS", "find-links"],
  ] as const)
    if (env[name]) take(key, env[name], `variable ${name}`);
  return found;
}

function filesOf(home: string, env: PresetSource["env"], root: string): string[] {
  return [
    join(root, "etc/xdg/pip/pip.conf"),
    join(root, "etc/pip.conf"),
    join(home, ".pip/pip.conf"),
    join(env.XDG_CONFIG_HOME || join(home, ".config"), "pip/pip.conf"),
    ...(env.VIRTUAL_ENV ? [join(env.VIRTUAL_ENV, "pip.conf")] : []),
    ...(env.PIP_CONFIG_FILE ? [env.PIP_CONFIG_FILE] : []),
  ];
}

/** Values go on in lines that begin with a space. */
function joinContinued(text: string): string {
  return text.replace(/\r?\n[ \t]+(?=[^\s#;])/g, " ");
}

async function ofRequirements(project: string): Promise<{ url: string; from: string }[]> {
  if (!project) return [];
  const found: { url: string; from: string }[] = [];
  for (const name of ["requirements.txt", "requirements-dev.txt", "constraints.txt"]) {
    const path = join(project, name);
    const text = (await readProjectText(path)) ?? "";
    for (const [, url] of text.matchAll(
      /^[ \t]*(?:-i|--index-url|--extra-index-url)[ \t=]+(https?:\/\/\S+)/gm,
    ))
      found.push({ url: url!, from: path });
  }
  return found;
}
