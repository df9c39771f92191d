import type { Process } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { formatAge, formatDuration } from "../text/units.ts";
import { boxNamed, boxPlace } from "../work/box.ts";
import { listOptions, listSandboxes } from "./ls.ts";

export const command = defineCommand({
  name: "ps",
  summary: "List the commands of a sandbox; without one, list sandboxes",
  positionals: [{ ...boxPlace, optional: true }],
  options: listOptions,
  examples: [
    { line: "caisson ps work", what: "What runs in the session `work`; with --all, also what has ended" },
  ],
  async run(call) {
    const {
      options,
      positionals: [name],
      client,
      print,
    } = call;
    if (name === undefined) return listSandboxes(call);
    const all = await boxNamed(client, name).processes();
    const processes = options.all ? all : all.filter(({ exit }) => exit === undefined);
    if (options.json) await print.json(processes);
    else if (options.quiet) for (const { id } of processes) await print.line(id);
    else {
      const rows = processes.map((process) => [
        process.id,
        stateOf(process),
        formatAge(process.startedAt),
        String(process.seq),
        print.safe(process.argv.join(" ")),
      ]);
      await print.table(["PROCESS", "STATE", "STARTED", "OUTPUT", "COMMAND"], rows);
    }
    return 0;
  },
});

function stateOf({ exit }: Process): string {
  if (!exit) return "running";
  const how = exit.lost || exit.signal || `exit ${exit.code}`;
  return `${how} after ${formatDuration(exit.durationMs)}`;
}
