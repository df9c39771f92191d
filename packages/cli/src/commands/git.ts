import type { Box } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import type { OptionTable } from "../command/option.ts";
import { UsageError } from "../command/usage-error.ts";
import { bundleOf, localSource } from "../work/git-bundle.ts";
import { specFrom, specOptions } from "../work/spec-options.ts";
import { reportExit, Wire } from "../work/wire.ts";

const options = {
  session: { kind: "text", short: "s", value: "NAME", summary: "Clone in this session's sandbox" },
  branch: { kind: "text", short: "b", value: "NAME", summary: "Check out this branch or tag" },
  depth: { kind: "int", summary: "Only so many commits of history" },
  ...specOptions,
} as const satisfies OptionTable;

const clone = defineCommand({
  name: "clone",
  summary: "Clone a repository inside a sandbox, which stays",
  details:
    "Git runs inside, with the sandbox's own network and nothing of your git configuration. A repository of this machine (a\n" +
    "path, file://, or a bundle) is handed in as a bundle. Without --session a sandbox without a project is made, and\n" +
    "its id printed.",
  positionals: [
    { name: "URL", summary: "A repository, or a bundle" },
    { name: "DIR", summary: "Where to, inside. Default: by the repository's name", optional: true },
  ],
  options,
  examples: [
    { line: "caisson git clone --session work . /tmp/copy", what: "This repository, in the session `work`" },
  ],
  async run(call) {
    const { options: values, positionals, io, print } = call;
    const [url, dir = directoryName(positionals[0]!)] = positionals as [string, string?];
    if (url.startsWith("-") || dir.startsWith("-") || dir === "")
      throw new UsageError("that is no repository, or no directory");
    const box = await place(call);
    const source = await handIn(call, box, url).catch(async (thrown) => {
      if (!values.session) await box.delete();
      throw thrown;
    });
    const extra = [
      io.stderr.isTerminal ? "--progress" : "--quiet",
      ...(values.branch ? ["--branch", values.branch] : []),
      ...(values.depth && source === url ? ["--depth", String(values.depth)] : []),
    ];
    const wire = new Wire(io, { stdin: false, terminal: false, owned: true });
    try {
      const start = await wire.start(box.exec(["git", "clone", ...extra, "--", source, dir]));
      if ("code" in start) return start.code;
      const exit = await wire.relay(start.run);
      if (source !== url) {
        await box.files.remove(source);
        const origin = url.startsWith("file://") ? url : localSource(url, io.cwd)!;
        if (exit.code === 0) await box.run(["git", "-C", dir, "remote", "set-url", "origin", "--", origin]);
      }
      if (exit.code === 0 && values.json) await print.json({ sandboxId: box.id, dir });
      else if (exit.code === 0 && !values.session) await print.line(box.id);
      if (exit.code !== 0 && !values.session) await box.delete();
      return await reportExit(io, exit);
    } finally {
      wire.close();
    }
  },
});

/** The session's sandbox, or a new one: a clone needs no project around it unless somebody says so. */
async function place({ client, options: values, io, host }: Call<typeof options>): Promise<Box> {
  const wantsProject = values.workspace !== undefined || values.mode !== undefined;
  const { spec } = specFrom({ ...values, "no-workspace": values["no-workspace"] || !wantsProject }, io, host);
  if (!values.session) return client.create(spec);
  const living = (await client.sessions.list()).find(({ name }) => name === values.session);
  return living ? client.sandboxes.at(living.sandbox.id) : client.sessions.open(values.session, spec);
}

/** What git inside clones from: the address itself, or a bundle of what lies on this machine. */
async function handIn({ io, host }: Call<typeof options>, box: Box, url: string): Promise<string> {
  const path = localSource(url, io.cwd);
  if (path === undefined) return url;
  if (!host.sharesFiles)
    throw new UsageError("the daemon is on another machine: name a repository that it can reach");
  await using bundle = await bundleOf(path);
  const name = `caisson-${crypto.randomUUID()}.bundle`;
  await box.files.upload("/tmp", bundle.archive(name));
  return `/tmp/${name}`;
}

function directoryName(url: string): string {
  const last =
    url
      .replace(/\/+$/, "")
      .replace(/\/\.git$/, "")
      .split(/[/:]/)
      .at(-1) ?? "";
  const name = last.replace(/\.(git|bundle)$/, "");
  return name === "." || name === ".." || name === "" ? "repository" : name;
}

export const command = defineCommand({
  name: "git",
  summary: "Repositories inside sandboxes",
  commands: [clone],
});
