import type { FileInfo } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { textOrBytes, toJson } from "../text/json.ts";
import { Neutraliser } from "../text/neutralise.ts";
import { formatSize } from "../text/units.ts";
import { boxNamed, boxPlace } from "../work/box.ts";
import { untilLeft } from "../work/until-left.ts";

const pathPlace = { name: "PATH", summary: "Absolute, or from the sandbox's working directory" } as const;
const here = { ...pathPlace, optional: true } as const;

const list = defineCommand({
  name: "ls",
  summary: "List a directory",
  positionals: [boxPlace, here],
  options: { recursive: { kind: "flag", short: "R", summary: "Also everything below" } },
  async run(call) {
    const {
      options,
      positionals: [, path = "."],
      print,
    } = call;
    const files = await filesOf(call).list(path, { recursive: options.recursive });
    files.sort((a, b) => (a.path < b.path ? -1 : 1));
    if (options.json) await print.json({ files: files.map(infoJson), truncated: files.truncated });
    else await print.rows(files.map((file) => row(call, file)));
    if (files.truncated) await print.note("the listing was cut at its limit");
    return 0;
  },
});

const cat = defineCommand({
  name: "cat",
  summary: "Print files",
  positionals: [boxPlace, { ...pathPlace, rest: true }],
  async run(call) {
    const {
      io,
      options,
      positionals: [, ...paths],
      print,
    } = call;
    for (const path of paths) {
      if (options.json) {
        await print.json({ path, ...textOrBytes("data", (await filesOf(call).read(path)).bytes) });
        continue;
      }
      const clean = io.stdout.isTerminal ? new Neutraliser() : undefined;
      for await (const bytes of filesOf(call).readStream(path, { signal: io.gone })) {
        await io.stdout.write(clean?.push(bytes) ?? bytes);
      }
      if (clean) await io.stdout.write(clean.end());
    }
    return 0;
  },
});

const stat = defineCommand({
  name: "stat",
  summary: "Describe a file",
  positionals: [boxPlace, pathPlace],
  options: { follow: { kind: "flag", short: "L", summary: "What a link points to instead of the link" } },
  async run(call) {
    const {
      options,
      positionals: [, path],
      print,
    } = call;
    const info = await filesOf(call).stat(path!, { follow: options.follow });
    if (options.json) await print.json(infoJson(info));
    else {
      const rows = [
        ["path", print.safe(info.path)],
        ["type", info.type],
        ["size", String(info.size)],
        ["mode", octal(info.mode)],
        ["modified", info.modifiedAt?.toISOString() ?? ""],
        ["etag", info.etag],
      ];
      if (info.target) rows.push(["target", print.safe(info.target)]);
      await print.rows(rows);
    }
    return 0;
  },
});

const remove = defineCommand({
  name: "rm",
  summary: "Remove files",
  positionals: [boxPlace, { ...pathPlace, rest: true }],
  options: { recursive: { kind: "flag", short: "r", summary: "Also directories with everything in them" } },
  async run(call) {
    const {
      options,
      positionals: [, ...paths],
      print,
    } = call;
    for (const path of paths) await filesOf(call).remove(path, { recursive: options.recursive });
    if (options.json) await print.json({ removed: paths });
    return 0;
  },
});

const mkdir = defineCommand({
  name: "mkdir",
  summary: "Make a directory",
  positionals: [boxPlace, pathPlace],
  options: {
    parents: { kind: "flag", short: "p", summary: "Also missing parents; an existing directory is fine" },
    mode: { kind: "text", value: "OCTAL", summary: "Permission bits. Default: 755" },
  },
  async run(call) {
    const {
      options,
      positionals: [, path],
      print,
    } = call;
    const info = await filesOf(call).mkdir(path!, { parents: options.parents, mode: modeFrom(options.mode) });
    if (options.json) await print.json(infoJson(info));
    return 0;
  },
});

const move = defineCommand({
  name: "mv",
  summary: "Move a file",
  positionals: [boxPlace, { ...pathPlace, name: "FROM" }, { ...pathPlace, name: "TO" }],
  options: { force: { kind: "flag", short: "f", summary: "Replace what is there" } },
  async run(call) {
    const {
      options,
      positionals: [, from, to],
      print,
    } = call;
    const info = await filesOf(call).move(from!, to!, { overwrite: options.force });
    if (options.json) await print.json(infoJson(info));
    return 0;
  },
});

const write = defineCommand({
  name: "write",
  summary: "Write standard input to a file, atomically",
  positionals: [boxPlace, pathPlace],
  options: {
    mode: { kind: "text", value: "OCTAL", summary: "Permission bits of a new file. Default: 644" },
    parents: { kind: "flag", short: "p", summary: "Make missing parent directories" },
    "if-match": {
      kind: "text",
      value: "ETAG",
      summary: "Only if its etag is this; * for any file, - for none",
    },
  },
  async run(call) {
    const {
      io,
      options,
      positionals: [, path],
      print,
    } = call;
    const info = await filesOf(call).write(path!, io.stdin.read(), {
      mode: modeFrom(options.mode),
      parents: options.parents,
      ifMatch: options["if-match"],
      signal: io.gone,
    });
    if (options.json) await print.json(infoJson(info));
    return 0;
  },
});

const watch = defineCommand({
  name: "watch",
  summary: "Tell about changes below a directory until you leave",
  positionals: [boxPlace, here],
  options: { recursive: { kind: "flag", short: "R", summary: "Also everything below" } },
  run(call) {
    const {
      io,
      options,
      positionals: [, path = "."],
      print,
    } = call;
    return untilLeft(io, async (signal) => {
      for await (const change of filesOf(call).watch(path, { recursive: options.recursive, signal })) {
        const { pathBytes, path: _, ...rest } = change;
        if (options.json) await print.jsonLine({ ...rest, ...textOrBytes("path", pathBytes) });
        else await print.line(`${change.kind} ${print.safe(change.path)}`.trimEnd());
      }
    });
  },
});

function filesOf({ client, positionals: [name] }: Pick<Call, "client" | "positionals">) {
  return boxNamed(client, name!).files;
}

function infoJson({ path: _, pathBytes, ...info }: FileInfo): object {
  return { ...textOrBytes("path", pathBytes), ...(toJson(info) as object) };
}

function row({ print }: Pick<Call, "print">, file: FileInfo): string[] {
  const letter = { file: "-", directory: "d", symlink: "l", special: "s" }[file.type] ?? "?";
  const name = print.safe(file.path);
  const shown =
    file.type === "directory"
      ? print.paint("cyan", name)
      : file.target
        ? `${name} -> ${print.safe(file.target)}`
        : name;
  return [
    `${letter}${octal(file.mode)}`,
    formatSize(file.size),
    file.modifiedAt?.toISOString().slice(0, 19) ?? "",
    shown,
  ];
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

function modeFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^0?[0-7]{3}$/.test(text)) throw new UsageError(`--mode: ${text} is not an octal mode such as 644`);
  return Number.parseInt(text, 8);
}

export const command = defineCommand({
  name: "files",
  summary: "Look at and change files in a sandbox",
  commands: [list, cat, stat, write, mkdir, move, remove, watch],
  examples: [
    { line: "caisson files ls work src", what: "What is in src" },
    { line: "echo hello | caisson files write work /tmp/greeting", what: "Write a file" },
    { line: "caisson files watch work -R", what: "See what changes" },
  ],
});
