import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { PresetSource, ResolvedPreset } from "../preset.ts";

/** A machine with nothing but what a test writes: `home/…`, `project/…`, `root/…`. */
export function machine(
  files: Record<string, string> = {},
  env: Record<string, string> = {},
): PresetSource & Disposable & { at(name: string): string } {
  const dir = mkdtempSync(join(tmpdir(), "caisson-preset-"));
  const at = (name: string) => join(dir, name);
  for (const [name, text] of Object.entries({
    "home/.keep": "",
    "project/.keep": "",
    "root/.keep": "",
    ...files,
  })) {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text);
  }
  return {
    home: at("home"),
    project: at("project"),
    root: at("root"),
    env,
    at,
    [Symbol.dispose]: () => rmSync(dir, { recursive: true }),
  };
}

export function rules({ hosts }: ResolvedPreset): string[] {
  return hosts.map(({ rule }) => rule);
}
