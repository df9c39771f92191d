// Writes everything that derives from proto/ and spec/rules.json.
// `--check` writes into a temporary place instead and fails if the committed files differ.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
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

function rulesForRust(rules: Record<"link" | "network" | "paths", Record<string, number>>): string {
  const constants = {
    ...prefixed("LINK", rules.link),
    ...prefixed("NETWORK", rules.network),
    ...prefixed("PATH", rules.paths),
  };
  const lines = Object.entries(constants).map(([name, value]) => `pub const ${name}: usize = ${value};`);
  return `// Generated from spec/rules.json.\n\n${lines.join("\n")}\n`;
}

/** The names of what commands may call, from the guest's own filter. */
function syscallsForTypeScript(): string {
  const folder = join(root, "guest/src/wall/seccomp");
  const text = ["allow.rs", "arguments.rs"]
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n");
  const names = [...new Set([...text.matchAll(/\bSYS_(\w+)/g)].map(([, name]) => name))].sort();
  return `// Generated from guest/src/wall/seccomp.\n\nexport const syscalls = ${JSON.stringify(names, null, 2)} as const;\n`;
}

function prefixed(prefix: string, values: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [`${prefix}_${key.toUpperCase()}`, value]),
  );
}

/** Writes everything below `target`, which has the repository's layout. */
function generateInto(target: string): void {
  for (const dir of generated) mkdirSync(join(target, dir), { recursive: true });
  run("buf", ["generate", "--output", target]);
  const image = join(target, "image.binpb");
  run("buf", ["build", "-o", image]);
  writeOpenapi(image, join(target, "packages/api/src/gen/openapi.json"));
  run(
    "cargo",
    ["run", "--quiet", "--locked", "-p", "gen", "--", image, join(target, "guest/src/gen")],
    join(root, "guest"),
  );
  const rules = JSON.parse(readFileSync(join(root, "spec/rules.json"), "utf8"));
  writeFileSync(join(target, "packages/contract/src/gen/rules.ts"), rulesForTypeScript(rules));
  writeFileSync(join(target, "guest/src/gen/rules.rs"), rulesForRust(rules));
  writeFileSync(join(target, "packages/contract/src/gen/syscalls.ts"), syscallsForTypeScript());
}

function filesBelow(dir: string): Set<string> {
  if (!existsSync(dir)) return new Set();
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return new Set(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(dir, join(entry.parentPath, entry.name))),
  );
}

/** Files that differ between what is there and what was generated. */
function differences(target: string): string[] {
  return generated.flatMap((dir) => {
    const [here, made] = [join(root, dir), join(target, dir)];
    const names = filesBelow(here).union(filesBelow(made));
    const same = (name: string) => {
      const [old, fresh] = [join(here, name), join(made, name)];
      return existsSync(old) && existsSync(fresh) && readFileSync(old).equals(readFileSync(fresh));
    };
    return [...names].filter((name) => !same(name)).map((name) => join(dir, name));
  });
}

/** Touches only what differs, so that whoever runs from these files meanwhile finds them all. */
function adopt(target: string, names: string[]): void {
  for (const name of names) {
    if (!existsSync(join(target, name))) rmSync(join(root, name));
    else {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), readFileSync(join(target, name)));
    }
  }
}

const scratch = mkdtempSync(join(tmpdir(), "caisson-generate-"));
try {
  generateInto(scratch);
  const names = differences(scratch);
  if (!process.argv.includes("--check")) {
    adopt(scratch, names);
    // In a process of its own: it has to load what was just written.
    run("node", ["conformance/vectors/write.ts"]);
  } else if (names.length > 0) {
    console.error(`not up to date, run \`npm run generate\`:\n${names.join("\n")}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true });
}
