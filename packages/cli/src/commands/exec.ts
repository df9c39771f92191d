import { defineCommand } from "../command/command.ts";
import { Asking } from "../work/asking.ts";
import { boxNamed, boxPlace } from "../work/box.ts";
import { commandOptions, execOptions } from "../work/command-options.ts";
import { resultJson } from "../work/result-json.ts";
import { reportExit, Wire } from "../work/wire.ts";

export const command = defineCommand({
  name: "exec",
  summary: "Run a command in a sandbox that is there",
  positionals: [boxPlace, { name: "COMMAND", summary: "Program and arguments", rest: true, command: true }],
  options: commandOptions,
  examples: [
    { line: "caisson exec work -- npm test", what: "In the sandbox of the session `work`" },
    { line: "caisson exec -it sb_4k2v9x1m8q3z7b5c -- bash", what: "An interactive shell" },
    { line: "tar c . | caisson exec work -- tar x -C /tmp", what: "Binary input by a pipe" },
    {
      line: "caisson exec --detach work -- npm start",
      what: "Start it and go on; `caisson logs work` shows its output",
    },
  ],
  runsCommands: true,
  async run({ options: values, positionals: [name, ...argv], io, client, print }) {
    const exec = await execOptions(values, argv, io);
    const box = boxNamed(client, name!);
    if (values.detach) {
      const run = await box.exec(argv, exec);
      await run.detach();
      if (values.json) await print.json({ sandboxId: run.sandboxId, processId: run.id });
      else await print.line(run.id);
      return 0;
    }
    const wiring = { stdin: exec.openStdin ?? false, terminal: values.tty, owned: true };
    const wire = new Wire(io, wiring);
    const asking = new Asking(io, client, wiring);
    try {
      const start = await wire.start(box.exec(argv, exec));
      if ("code" in start) return start.code;
      const { run } = start;
      asking.show({ sandboxId: run.sandboxId });
      if (!values.json) return await reportExit(io, await wire.relay(run));
      const result = await wire.during(run, () => run.result());
      await print.json(resultJson(result));
      return result.code & 255;
    } finally {
      asking.stop();
      wire.close();
    }
  },
});
