import { defineCommand } from "../command/command.ts";
import { boxNamed, boxPlace, processOf } from "../work/box.ts";
import { relayOutput, reportExit, Wire } from "../work/wire.ts";

export const command = defineCommand({
  name: "attach",
  summary: "Watch a running command, and type to it",
  details:
    "Shows what is kept of its output and what comes. Ctrl-C stops watching; the command goes on, unless it has\n" +
    "a terminal, where Ctrl-C is typed to it like any other key.",
  positionals: [boxPlace, { name: "PROCESS", summary: "Default: the latest", optional: true }],
  options: {
    from: { kind: "int", summary: "Begin after this number of output bytes. Default: 0" },
    "no-stdin": { kind: "flag", summary: "Only watch" },
  },
  examples: [{ line: "caisson attach work", what: "The latest command of the session `work`" }],
  runsCommands: true,
  async run({ options: values, positionals: [name, id], io, client, print }) {
    const run = await processOf(boxNamed(client, name!), id);
    const { hasTerminal } = await run.info();
    const terminal = hasTerminal && io.stdin.isTerminal && io.stdout.isTerminal && !values["no-stdin"];
    const stdin = !values["no-stdin"] && (terminal || (!io.stdin.isTerminal && !io.stdin.isEmpty));
    const wire = new Wire(io, { stdin, terminal, owned: false });
    const left = Promise.withResolvers<"left">();
    const undo = io.onSignal((signal) => {
      if (signal === "SIGINT" || signal === "SIGTERM") left.resolve("left");
    });
    io.gone.addEventListener("abort", () => left.resolve("left"), { once: true });
    try {
      const watching = wire.during(run, () =>
        relayOutput(io, run, { from: values.from ?? 0, raw: terminal }),
      );
      if ((await Promise.race([watching, left.promise])) === "left") {
        await print.note(`${run.id} goes on; \`caisson attach ${name} ${run.id}\` comes back to it`);
        return 0;
      }
      return await reportExit(io, await run.exit);
    } finally {
      undo();
      wire.close();
    }
  },
});
