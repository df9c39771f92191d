import type { Look } from "../look.ts";

/** Where the programs of an installed version are; some tools unpack one level deeper. */
export function programsOf(version: string, look: Look): string[] {
  return [`${version}/bin`, `${version}/go/bin`, `${version}/.cargo/bin`].filter((bin) =>
    look.isDirectory(bin),
  );
}

/** npm, pip and cargo of an installed version read these, which may hold tokens. */
const configs = ["etc/npmrc", "lib/node_modules/npm/npmrc", "pip.conf"];
const cargoConfigs = ["credentials.toml", "credentials", "config.toml", "config"];

export function configsOf(installs: string, look: Look): string[] {
  return look.names(installs).flatMap((tool) => {
    const names = tool === "rust" ? cargoConfigs.flatMap((name) => [name, `.cargo/${name}`]) : configs;
    return look
      .names(`${installs}/${tool}`)
      .flatMap((version) => names.map((name) => `${installs}/${tool}/${version}/${name}`))
      .filter((file) => look.exists(file));
  });
}

/** `nodejs 22.1.0 system` by tool, as in `.tool-versions`. */
export function toolVersions(text: string): Map<string, string[]> {
  const lines = text.split("\n").map((line) => line.replace(/#.*/, "").trim().split(/\s+/));
  return new Map(
    lines.filter(([tool]) => isName(tool)).map(([tool, ...versions]) => [tool!, versions.filter(isName)]),
  );
}

export function isName(word: string | undefined): boolean {
  return word !== undefined && /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/.test(word);
}

/** The newest of some versions, by their numbers. */
export function newest(versions: readonly string[]): string | undefined {
  return [...versions].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).at(-1);
}
