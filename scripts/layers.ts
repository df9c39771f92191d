// The layer rule: a package imports only from layers below its own.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** From the top down; a package may import any package of a later row. */
const layers = [["daemon"], ["cli", "api"], ["sandbox"], ["store"], ["client"], ["contract"]];

function layerOf(name: string): number {
  const layer = layers.findIndex((row) => row.includes(name));
  if (layer < 0) throw new Error(`packages/${name} is in no layer: name it in scripts/layers.ts`);
  return layer;
}

/** Every import that breaks the rule, as `file: why`. */
export function layerViolations(): string[] {
  const violations: string[] = [];
  for (const file of globSync("packages/*/src/**/*.ts", { cwd: root })) {
    const name = file.split("/")[1]!;
    const text = readFileSync(join(root, file), "utf8");
    for (const match of text.matchAll(/(?:from|import\()\s*"(@caisson\/([a-z]+)[^"]*|\.\.?\/[^"]*)"/g)) {
      const [, specifier, target] = match;
      if (target === undefined) {
        const resolved = join("/", file, "..", specifier!);
        if (!resolved.startsWith(`/packages/${name}/`)) violations.push(`${file}: reaches into ${specifier}`);
      } else if (target !== name && layerOf(target) <= layerOf(name)) {
        violations.push(`${file}: ${name} must not import ${target}`);
      }
    }
  }
  return violations;
}

if (import.meta.main) {
  const violations = layerViolations();
  for (const violation of violations) console.error(violation);
  process.exit(violations.length > 0 ? 1 : 0);
}
