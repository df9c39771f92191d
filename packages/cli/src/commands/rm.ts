import { CaissonError } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { reportError } from "../text/report-error.ts";
import { boxNamed, boxPlace } from "../work/box.ts";

export const command = defineCommand({
  name: "rm",
  summary: "End sandboxes; those that have ended already are forgotten",
  positionals: [{ ...boxPlace, rest: true }],
  options: {
    forget: { kind: "flag", summary: "Also forget its record and its output" },
    force: { kind: "flag", short: "f", summary: "Do not mind those that are not there" },
  },
  examples: [
    { line: "caisson rm work", what: "End the sandbox of the session `work`" },
    { line: "caisson rm --forget $(caisson ls -q --all)", what: "Clear everything away" },
  ],
  async run({ options, positionals, io, client, print }) {
    const ended = [];
    let code = 0;
    for (const name of positionals) {
      try {
        const sandbox = await boxNamed(client, name).delete({ forget: options.forget });
        ended.push(sandbox);
        if (!options.json) await print.line(sandbox.id);
      } catch (thrown) {
        if (options.force && CaissonError.from(thrown).code === "SANDBOX_NOT_FOUND") continue;
        code = await reportError(thrown, { io, json: options.json, name: "caisson rm", runsCommands: false });
      }
    }
    if (options.json) await print.json(ended);
    return code;
  },
});
