// What the tools inside are told of the developer's configuration: where to fetch from, and nothing by which anybody logs in.

/** A file in the sandbox's home directory. */
export interface ToldFile {
  /** Beneath the home directory. */
  path: string;
  content: string;
}

export interface CargoSources {
  /** What stands for crates.io. */
  replacement?: { registry: string } | undefined;
  registries: Readonly<Record<string, string>>;
}

export function cargoConfig({ replacement, registries }: CargoSources): ToldFile[] {
  const lines: string[] = [];
  if (replacement)
    lines.push(
      "[source.crates-io]",
      'replace-with = "caisson-mirror"',
      "[source.caisson-mirror]",
      `registry = ${quoted(replacement.registry)}`,
    );
  for (const [name, index] of Object.entries(registries))
    lines.push(`[registries.${quoted(name)}]`, `index = ${quoted(index)}`);
  return lines.length === 0 ? [] : [{ path: ".cargo/config.toml", content: `${lines.join("\n")}\n` }];
}

export interface MavenPlace {
  id: string;
  url: string;
}

export function mavenSettings(
  mirrors: readonly (MavenPlace & { of: readonly string[] })[],
  repositories: readonly MavenPlace[],
): ToldFile[] {
  if (mirrors.length + repositories.length === 0) return [];
  const mirrored = mirrors.map(
    ({ id, url, of }) =>
      `<mirror>${element("id", id)}${element("mirrorOf", of.join(","))}${element("url", url)}</mirror>`,
  );
  const listed = (outer: string, inner: string) =>
    element(
      outer,
      repositories.map(({ id, url }) => `<${inner}>${element("id", id)}${element("url", url)}</${inner}>`),
    );
  const profile = `<profile><id>caisson</id>${listed("repositories", "repository")}${listed("pluginRepositories", "pluginRepository")}</profile>`;
  const profiles =
    repositories.length === 0
      ? ""
      : `<profiles>${profile}</profiles><activeProfiles><activeProfile>caisson</activeProfile></activeProfiles>`;
  return [
    {
      path: ".m2/settings.xml",
      content: `<settings>${element("mirrors", mirrored)}${profiles}</settings>\n`,
    },
  ];
}

/** Configuration of git as variables, which beat its files. */
export function gitVariables(
  entries: readonly (readonly [key: string, value: string])[],
): Record<string, string> {
  if (entries.length === 0) return {};
  const pairs = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(pairs) };
}

/** A string of TOML; JSON's are among them. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** An element around a text, or around elements that are written already. */
function element(name: string, content: string | readonly string[]): string {
  const inner =
    typeof content === "string"
      ? content.replace(/[<>&"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
      : content.join("");
  return `<${name}>${inner}</${name}>`;
}
