import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { PresetSource, ResolvedPreset } from "../preset.ts";

/** A machine with nothing but what a test writes: `home/…`, `project/…`, `root/…`, and programs in `bin/…`. */
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
    "scratch/.keep": "",
    ...files,
  })) {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text, { mode: name.startsWith("bin/") ? 0o755 : 0o644 });
  }
  return {
    home: at("home"),
    project: at("project"),
    root: at("root"),
    scratch: at("scratch"),
    env: { PATH: at("bin"), ...env },
    at,
    [Symbol.dispose]: () => rmSync(dir, { recursive: true }),
  };
}

/** A program that says this, whatever it is asked. */
export function saying(text: string): string {
  return `#!/bin/sh\n${text
    .split("\n")
    .map((line) => `echo '${line}'\n`)
    .join("")}`;
}

export function rules({ hosts }: ResolvedPreset): string[] {
  return hosts.map(({ rule }) => rule);
}
