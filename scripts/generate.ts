// Writes everything that derives from proto/ and spec/rules.json.
// `--check` writes into a temporary place instead and fails if the committed files differ.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeOpenapi } from "./openapi.ts";

const root = join(import.meta.dirname, "..");
const generated = ["packages/contract/src/gen", "packages/api/src/gen", "guest/src/gen"];

function run(command: string, args: string[], cwd = root): string {
  const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}` };
  return execFileSync(command, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function rulesForTypeScript(rules: object): string {
  return `// Generated from spec/rules.json.\n\nexport const rules = ${JSON.stringify(rules, null, 2)} as const;\n`;
}

function rulesForRust(rules: { link: Record<string, number>; paths: Record<string, number> }): string {
  const lines = Object.entries({ ...prefixed("LINK", rules.link), ...prefixed("PATH", rules.paths) }).map(
    ([name, value]) => `pub const ${name}: usize = ${value};`,
  );
  return `// Generated from spec/rules.json.\n\n${lines.join("\n")}\n`;
}

function prefixed(prefix: string, values: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [`${prefix}_${key.toUpperCase()}`, value]),
  );
}

function generate(): void {
  run("buf", ["generate"]);
  const rules = JSON.parse(readFileSync(join(root, "spec/rules.json"), "utf8"));
  writeFileSync(join(root, "packages/contract/src/gen/rules.ts"), rulesForTypeScript(rules));
  const scratch = mkdtempSync(join(tmpdir(), "caisson-generate-"));
  try {
    const image = join(scratch, "image.binpb");
    run("buf", ["build", "-o", image]);
    writeOpenapi(image, join(root, "packages/api/src/gen/openapi.json"));
    run(
      "cargo",
      ["run", "--quiet", "--locked", "-p", "gen", "--", image, join(root, "guest/src/gen")],
      join(root, "guest"),
    );
  } finally {
    rmSync(scratch, { recursive: true });
  }
  writeFileSync(join(root, "guest/src/gen/rules.rs"), rulesForRust(rules));
}

function check(): boolean {
  const before = mkdtempSync(join(tmpdir(), "caisson-generated-"));
  for (const dir of generated) cpSync(join(root, dir), join(before, dir), { recursive: true });
  generate();
  let same = true;
  for (const dir of generated) {
    try {
      execFileSync("diff", ["-r", join(before, dir), join(root, dir)], { stdio: "inherit" });
    } catch {
      same = false;
    }
  }
  rmSync(before, { recursive: true });
  return same;
}

if (process.argv.includes("--check")) {
  if (!check()) {
    console.error("generated code was not up to date; it is now: commit it");
    process.exit(1);
  }
} else {
  generate();
}
