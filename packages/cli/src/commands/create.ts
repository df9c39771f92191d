import { CaissonError, type SandboxSpec } from "@caisson/client";
import { type Call, defineCommand } from "../command/command.ts";
import type { OptionTable } from "../command/option.ts";
import { readEnvironment } from "../work/environment.ts";
import { tellPreparing } from "../work/preparing.ts";
import { specFrom, specOptions } from "../work/spec-options.ts";

const options = {
  session: {
    kind: "text",
    short: "s",
    value: "NAME",
    summary: "Give it a name, under which `run` and `exec` find it",
  },
  env: {
    kind: "text",
    short: "e",
    many: true,
    value: "NAME[=VALUE]",
    summary: "A variable for every command",
  },
  "env-file": {
    kind: "text",
    many: true,
    value: "FILE",
    summary: "Variables from a file of NAME=VALUE lines",
  },
  "no-wait": { kind: "flag", summary: "Return at once when the machine is full, with a queued sandbox" },
  ...specOptions,
} as const satisfies OptionTable;

export const command = defineCommand({
  name: "create",
  summary: "Make a sandbox and print its id",
  options,
  examples: [
    { line: "caisson create --session work", what: "A sandbox with a name, on this directory" },
    {
      line: "caisson create --no-workspace --memory 1g --label task=42",
      what: "Without a project, bounded and labelled",
    },
  ],
  async run(call) {
    const { options: values, io, host, client, print } = call;
    const { spec, workspaceIsDefault, note } = specFrom(values, io, host);
    const env = await readEnvironment(values, io);
    if (env) spec.env = env;
    if (note) await print.note(note);
    const creating = create(call, spec).catch(async (thrown) => {
      const { code, message } = CaissonError.from(thrown);
      if (!workspaceIsDefault || code !== "WORKSPACE_REFUSED") throw thrown;
      await print.note(`no project is attached: ${message}`);
      const { workspace: _, ...rest } = spec;
      return create(call, rest);
    });
    const box = await tellPreparing(io, client, creating);
    if (values.json) await print.json(box.info);
    else await print.line(box.id);
    return 0;
  },
});

function create({ client, options: values }: Call<typeof options>, spec: SandboxSpec) {
  if (values.session) return client.sessions.open(values.session, spec);
  return client.sandboxes.create(spec, { wait: !values["no-wait"] });
}
