import { CaissonError, type Files } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { boxNamed } from "../work/box.ts";
import { resolve } from "../work/spec-options.ts";

export const command = defineCommand({
  name: "cp",
  summary: "Copy files and directories into a sandbox or out of it",
  details:
    "One side is BOX:PATH, the other a path of yours, or `-` for a tar stream on standard input or output.",
  positionals: [
    { name: "FROM", summary: "PATH, BOX:PATH or -" },
    { name: "TO", summary: "PATH, BOX:PATH or -" },
  ],
  examples: [
    { line: "caisson cp data.csv work:/tmp/", what: "A file into the sandbox" },
    { line: "caisson cp work:dist ./dist", what: "A directory out of it" },
    { line: "caisson cp work:src - | tar tv", what: "As a tar stream" },
  ],
  async run(call) {
    const [from, to] = call.positionals as [string, string];
    const source = remotePart(from);
    const target = remotePart(to);
    if (Boolean(source) === Boolean(target))
      throw new UsageError("exactly one of FROM and TO must be BOX:PATH");
    const done = source
      ? await download(call, boxNamed(call.client, source.box).files, source.path, to)
      : await upload(call, boxNamed(call.client, target!.box).files, from, target!.path);
    for (const skipped of done.skipped) await call.print.note(`left out ${skipped}`);
    if (call.options.json && to !== "-") await call.print.json(done);
    return done.skipped.length > 0 ? 1 : 0;
  },
});

interface Copied {
  files: number;
  bytes: number;
  skipped: string[];
}

/** `BOX:PATH`, also `session:NAME:PATH`. What has a slash before its first colon is a path. */
export function remotePart(word: string): { box: string; path: string } | undefined {
  const match = /^((?:session:)?[^:/]+):(.*)$/s.exec(word);
  return match ? { box: match[1]!, path: match[2] || "." } : undefined;
}

async function upload({ io }: Call, files: Files, from: string, path: string): Promise<Copied> {
  const signal = io.gone;
  if (from === "-") return { ...(await files.upload(path, io.stdin.read(), { signal })), skipped: [] };
  const { stat } = await import("node:fs/promises");
  const local = resolve(io.cwd, from);
  const stats = await stat(local).catch((thrown) => {
    throw new UsageError(`cannot copy ${from}: ${reason(thrown)}`);
  });
  const place = await placeIn(files, path, baseName(local));
  if (stats.isFile()) {
    const info = await files.write(place.whole, io.readFile(local), { mode: stats.mode & 0o777, signal });
    return { files: 1, bytes: info.size, skipped: [] };
  }
  if (!stats.isDirectory()) throw new UsageError(`${from} is neither a file nor a directory`);
  const { pack } = await import("../tar/pack.ts");
  return { ...(await files.upload(place.directory, pack(local, place.name), { signal })), skipped: [] };
}

async function download({ io, options }: Call, files: Files, path: string, to: string): Promise<Copied> {
  const signal = io.gone;
  if (to === "-") {
    if (io.stdout.isTerminal)
      throw new UsageError("a tar stream does not belong on a terminal; pipe it or name a file");
    if (options.json) throw new UsageError("--json and a tar stream cannot share standard output");
    let bytes = 0;
    for await (const chunk of files.download(path, { signal })) {
      bytes += chunk.length;
      await io.stdout.write(chunk);
    }
    return { files: 0, bytes, skipped: [] };
  }
  const info = await files.stat(path, { follow: true, signal });
  const { writeLocal, directoryTarget, fileTarget } = await import("../work/local-files.ts");
  const local = resolve(io.cwd, to);
  const name = baseName(path === "." ? "box" : path);
  if (info.type === "file") {
    const bytes = await writeLocal(
      await fileTarget(local, name, to),
      info.mode,
      files.readStream(path, { signal }),
    );
    return { files: 1, bytes, skipped: [] };
  }
  if (info.type !== "directory")
    throw new CaissonError("NOT_A_FILE", `${path} is neither a file nor a directory`);
  const { unpack } = await import("../tar/unpack.ts");
  return unpack(files.download(path, { signal }), await directoryTarget(local, name));
}

/** Where something lands in the sandbox: in a directory that is there under its own name, else as the path says. */
async function placeIn(
  files: Files,
  path: string,
  name: string,
): Promise<{ directory: string; name: string; whole: string }> {
  const there = await files.stat(path, { follow: true }).catch((thrown) => {
    if (CaissonError.from(thrown).code === "PATH_NOT_FOUND") return undefined;
    throw thrown;
  });
  if (there?.type === "directory") return { directory: path, name, whole: join(path, name) };
  if (path.endsWith("/"))
    throw new CaissonError("PATH_NOT_FOUND", `there is no directory ${path} in the sandbox`);
  const slash = path.lastIndexOf("/");
  const directory = slash === -1 ? "." : path.slice(0, slash) || "/";
  return { directory, name: path.slice(slash + 1), whole: path };
}

function join(directory: string, name: string): string {
  return directory.endsWith("/") ? directory + name : `${directory}/${name}`;
}

function baseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || "root";
}

function reason(thrown: unknown): string {
  const { code } = thrown as NodeJS.ErrnoException;
  return code === "ENOENT" ? "it is not there" : code === "EACCES" ? "you may not read it" : String(code);
}
