// https://docs.npmjs.com/cli/configuring-npm/npmrc: the project's file beats the user's, which beats the global
// one; `@scope:registry` names a registry for one scope.
import { join } from "node:path";
import { Places, withoutCredentials } from "./place.ts";
import type { Preset, PresetSource } from "./preset.ts";
import { iniEntries, readProjectText, readText } from "./read.ts";
import { askFor } from "./tool.ts";

interface Named {
  url: string;
  from: string;
  project: boolean;
}

export const npm: Preset = async (source) => {
  const places = new Places("npm");
  const registries = await registriesOf(source);
  const main = registries.get("registry");
  if (!main || !places.add(main.url, main.from, main.project)) {
    const argv = ["npm", "config", "get", "registry"] as const;
    places.addOwn(await askFor(/^(https?:\/\/\S+)$/gm, { argv }, source), argv.join(" "));
  }
  for (const [key, { url, from, project }] of registries)
    if (key !== "registry") places.add(url, from, project);
  // Files of the project are inside anyway.
  if (main && !main.project && URL.canParse(main.url))
    places.env.npm_config_registry = withoutCredentials(main.url);
  const scopes = [...registries].filter(
    ([key, { url, project }]) => key !== "registry" && !project && URL.canParse(url),
  );
  if (scopes.length > 0) {
    const lines = scopes.map(([key, { url }]) => `${key}=${withoutCredentials(url)}\n`);
    places.files.push({ path: ".npmrc", content: lines.join("") });
  }
  return places.resolved;
};

/** The registry in force by its key: `registry`, `@scope:registry`. */
async function registriesOf({ home, env, project, root = "/" }: PresetSource): Promise<Map<string, Named>> {
  const found = new Map<string, Named>();
  const take = (text: string | undefined, from: string, isProject = false) => {
    for (const { section, key, value } of iniEntries(text ?? "")) {
      if (section === "" && isRegistryKey(key))
        found.set(key, { url: expand(value, env), from, project: isProject });
    }
  };
  for (const name of ["usr/etc/npmrc", "usr/local/etc/npmrc", "etc/npmrc"]) {
    const path = join(root, name);
    take(await readText(path), path);
  }
  const user = env.NPM_CONFIG_USERCONFIG || env.npm_config_userconfig || join(home, ".npmrc");
  take(await readText(user), user);
  if (project) {
    const path = join(project, ".npmrc");
    take(await readProjectText(path), path, true);
  }
  for (const [name, value] of Object.entries(env)) {
    const key = /^npm_config_(.+)$/i.exec(name)?.[1]?.toLowerCase();
    if (key && value && isRegistryKey(key))
      found.set(key, { url: value, from: `variable ${name}`, project: false });
  }
  return found;
}

function isRegistryKey(key: string): boolean {
  return key === "registry" || /^@[^:]+:registry$/.test(key);
}

/** `${NAME}` stands for a variable; one that is not set stays as it is. */
function expand(value: string, env: PresetSource["env"]): string {
  const unquoted = value.replace(/^(["'])(.*)\1$/, "$2");
  return unquoted.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string) => env[name] ?? whole);
}
