// https://go.dev/ref/mod#environment-variables: variables beat the user's `go env -w` file, which beats Go's own. Modules
// under GOPRIVATE and those after `direct` come from their own hosts, which nobody can list beforehand.
import { join } from "node:path";
import defaults from "./defaults.json" with { type: "json" };
import { Places, ruleOfUrl, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { iniEntries, readText } from "./read.ts";

const names = ["GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE"] as const;
type Settings = Partial<Record<(typeof names)[number], { value: string; from: string }>>;

export const go: Preset = async (source) => {
  const places = new Places("go");
  const { GOPROXY: proxy, GOSUMDB: sums, ...others } = await settingsOf(source);
  const [defaultProxy, defaultSums] = defaults.go;
  if (proxy) addProxies(places, proxy);
  else places.add(defaultProxy!, "default");
  if (sums) addSums(places, sums);
  else if (proxy?.value !== "off") places.add(defaultSums!, "default");
  if (proxy)
    places.env.GOPROXY = proxy.value
      .split(/([,|])/)
      .map(shown)
      .join("");
  if (sums) places.env.GOSUMDB = sums.value;
  for (const [name, setting] of Object.entries(others)) if (setting) places.env[name] = setting.value;
  return places.resolved;
};

function addProxies(places: Places, { value, from }: { value: string; from: string }): void {
  for (const word of value.split(/[,|]/).map((part) => part.trim())) {
    if (word === "off" || word === "") continue;
    if (word === "direct")
      places.notes.push(`${from}: modules fetched directly need rules for their own hosts`);
    else places.add(word.includes("://") ? word : `https://${word}`, from);
  }
}

/** A name, perhaps with a key, perhaps with a URL behind it; `off`. */
function addSums(places: Places, { value, from }: { value: string; from: string }): void {
  if (value === "off" || value === "") return;
  const [name = "", url] = value.split(/\s+/);
  places.add(url ?? `https://${name.split("+")[0]}`, from);
}

async function settingsOf({ home, env, root = "/" }: PresetSource): Promise<Settings> {
  const found: Settings = {};
  const user = env.GOENV || join(env.XDG_CONFIG_HOME || join(home, ".config"), "go/env");
  const files = [join(env.GOROOT || join(root, "usr/local/go"), "go.env"), ...(user === "off" ? [] : [user])];
  for (const path of files) {
    for (const { key, value } of iniEntries((await readText(path)) ?? "")) {
      const name = names.find((known) => known === key);
      if (name) found[name] = { value: value.replace(/^(["'])(.*)\1$/, "$2"), from: path };
    }
  }
  for (const name of names) {
    const value = env[name];
    if (value) found[name] = { value, from: `variable ${name}` };
  }
  return found;
}

function shown(word: string): string {
  return ruleOfUrl(word) === undefined ? word : withoutCredentials(word);
}
