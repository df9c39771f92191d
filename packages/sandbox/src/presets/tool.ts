// What a tool says by itself where no file or variable names a registry: its own commands, code and messages are asked, so that
// nothing about any registry is written down here.
import { execFile } from "node:child_process";
import { mkdtemp, realpath, rm, stat, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import type { PresetSource } from "./preset.ts";

/** A question to a tool. */
export interface Question {
  /** The program and its arguments. */
  argv: readonly [string, ...string[]];
  /** Files for the empty directory in which it is asked: a tool that has no command for it is set a task. */
  files?: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string>>;
}

const answersWithinMs = 20_000;
const mostBytes = 256 * 1024;
const knownForMs = { answered: 10 * 60_000, silent: 10_000 };
const known = new Map<string, { said: Promise<string | undefined>; until: number }>();

/**
 * Everything that a tool prints, standard error included; undefined if it is not on this machine. It runs in an empty
 * directory, so that no project has a say, and is asked again when it is another program, or after ten minutes.
 */
export async function ask(question: Question, source: PresetSource): Promise<string | undefined> {
  const path = await find(question.argv[0], source);
  if (!path) return undefined;
  const { mtimeMs, size } = await stat(path);
  const key = JSON.stringify([path, mtimeMs, size, question, source.home]);
  const now = performance.now();
  const before = known.get(key);
  if (before && now < before.until) return before.said;
  const entry = { said: run(path, question, source), until: now + knownForMs.answered };
  known.set(key, entry);
  if ((await entry.said) === undefined) entry.until = performance.now() + knownForMs.silent;
  return entry.said;
}

/** Every match of the pattern's first group in what the tool says. */
export async function askFor(
  pattern: RegExp,
  question: Question,
  source: PresetSource,
): Promise<string[] | undefined> {
  const said = await ask(question, source);
  return said === undefined ? undefined : [...new Set([...said.matchAll(pattern)].map((match) => match[1]!))];
}

/** On the developer's PATH, but for what lies in the project: that is not the developer's program. */
async function find(program: string, { env, project }: PresetSource): Promise<string | undefined> {
  const inside = project && (await realpath(project).catch(() => project));
  for (const dir of (env.PATH ?? "").split(":").filter((one) => one.startsWith("/"))) {
    const path = await realpath(dir).then(
      (real) => join(real, program),
      () => "",
    );
    const target = await realpath(path).catch(() => "");
    if (target === "" || (inside && [path, target].some((one) => one.startsWith(inside + sep)))) continue;
    const found = await stat(target);
    if (found.isFile() && (found.mode & 0o111) !== 0) return path;
  }
  return undefined;
}

async function run(path: string, { argv, files, env }: Question, source: PresetSource) {
  const dir = await realpath(await mkdtemp(join(source.scratch, "ask-")));
  try {
    for (const [name, text] of Object.entries(files ?? {})) await writeFile(join(dir, name), text);
    return await new Promise<string | undefined>((resolve) => {
      const options = {
        cwd: dir,
        env: { ...source.env, HOME: source.home || dir, LC_ALL: "C", ...env },
        timeout: answersWithinMs,
        killSignal: "SIGKILL",
        maxBuffer: mostBytes,
      } as const;
      // Some say what is wanted in the message with which they fail.
      const child = execFile(path, argv.slice(1), options, (error, out, err) =>
        resolve(error?.killed || (error && typeof error.code === "string") ? undefined : `${out}\n${err}`),
      );
      child.stdin?.end();
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
