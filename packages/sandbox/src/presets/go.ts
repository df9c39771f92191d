// https://go.dev/ref/mod#environment-variables: variables beat the user's `go env -w` file, which beats Go's own. Modules
// under GOPRIVATE and those after `direct` come from their own hosts, which nobody can list beforehand.
import { join } from "node:path";
import { Places, ruleOfUrl, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { iniEntries, readText } from "./read.ts";
import { ask } from "./tool.ts";

const names = ["GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE"] as const;
interface Setting {
  value: string;
  from: string;
}
type Settings = Partial<Record<(typeof names)[number], Setting>>;
const question = { argv: ["go", "env", "GOPROXY", "GOSUMDB"], env: { GOTOOLCHAIN: "local" } } as const;

export const go: Preset = async (source) => {
  const places = new Places("go");
  const { GOPROXY: proxy, GOSUMDB: sums, ...others } = await settingsOf(source);
  const own = proxy && sums ? undefined : await askGo(source);
  if (proxy) addProxies(places, proxy);
  else if (own?.proxy) addProxies(places, { value: own.proxy, from: question.argv.join(" ") }, true);
  else places.addOwn(undefined, "");
  if (sums) addSums(places, sums);
  else if (own?.sums && proxy?.value !== "off")
    addSums(places, { value: own.sums, from: question.argv.join(" ") }, true);
  if (proxy)
    places.env.GOPROXY = proxy.value
      .split(/([,|])/)
      .map(shown)
      .join("");
  if (sums) places.env.GOSUMDB = sums.value;
  for (const [name, setting] of Object.entries(others)) if (setting) places.env[name] = setting.value;
  return places.resolved;
};

function addProxies(places: Places, { value, from }: Setting, byTool = false): void {
  for (const word of value.split(/[,|]/).map((part) => part.trim())) {
    if (word === "off" || word === "") continue;
    if (word === "direct")
      places.notes.push(`${from}: modules fetched directly need rules for their own hosts`);
    else places.add(word.includes("://") ? word : `https://${word}`, from, false, byTool);
  }
}

/** A name, perhaps with a key, perhaps with a URL behind it; `off`. */
function addSums(places: Places, { value, from }: Setting, byTool = false): void {
  if (value === "off" || value === "") return;
  const [name = "", url] = value.split(/\s+/);
  places.add(url ?? `https://${name.split("+")[0]}`, from, false, byTool);
}

async function askGo(source: PresetSource): Promise<{ proxy?: string; sums?: string } | undefined> {
  const [proxy, sums] = (await ask(question, source))?.split("\n").map((line) => line.trim()) ?? [];
  return { ...(proxy && { proxy }), ...(sums && { sums }) };
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
