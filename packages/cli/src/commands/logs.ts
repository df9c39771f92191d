import { defineCommand } from "../command/command.ts";
import { textOrBytes } from "../text/json.ts";
import { boxNamed, boxPlace, processOf } from "../work/box.ts";
import { untilLeft } from "../work/until-left.ts";
import { relayOutput } from "../work/wire.ts";

export const command = defineCommand({
  name: "logs",
  summary: "Show a command's output",
  positionals: [boxPlace, { name: "PROCESS", summary: "Default: the latest", optional: true }],
  options: {
    follow: { kind: "flag", short: "f", summary: "Stay until the command has ended" },
    from: { kind: "int", summary: "Begin after this number of output bytes. Default: 0" },
  },
  examples: [
    { line: "caisson logs -f work", what: "Follow the latest command of the session `work`" },
    { line: "caisson logs --from 4096 work p2", what: "What p2 wrote after its first 4096 bytes" },
  ],
  async run({ options: { follow, from = 0, json }, positionals: [name, id], io, client, print }) {
    const run = await processOf(boxNamed(client, name!), id);
    return untilLeft(io, async (signal) => {
      if (!json) return relayOutput(io, run, { from, raw: false, follow, signal });
      for await (const event of run.output({ from, follow, signal })) {
        if (event.stream === "gap")
          await print.jsonLine({ seq: event.seq, gap: { missingBytes: event.missing } });
        else await print.jsonLine({ seq: event.seq, [event.stream]: textOrBytes("text", event.bytes) });
      }
    });
  },
});
