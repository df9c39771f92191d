import { type Command, defineCommand } from "../command/command.ts";
import { entries } from "../command/completion.ts";
import { commandHelp, overview } from "../command/help.ts";
import { closest } from "../command/suggest.ts";
import { UsageError } from "../command/usage-error.ts";
import { loadGroups } from "./table.ts";

export const command = defineCommand({
  name: "help",
  summary: "Explain a command, with examples",
  positionals: [
    { name: "COMMAND", summary: "Its name, such as `run` or `keys create`", rest: true, optional: true },
  ],
  async run({ options, positionals, print }) {
    const groups = await loadGroups();
    const all = entries(groups.flatMap(({ commands }) => commands));
    if (positionals.length === 0) {
      if (options.json) await print.json(all.map(({ path, command }) => describe(path, command)));
      else await print.text(overview(groups, print.paint));
      return 0;
    }
    const name = positionals.join(" ");
    const found = all.find(({ path }) => path.join(" ") === name);
    if (!found) {
      const meant = closest(
        name,
        all.map(({ path }) => path.join(" ")),
      );
      throw new UsageError(`there is no command ${name}${meant ? `; did you mean ${meant}?` : ""}`);
    }
    if (options.json) await print.json(describe(found.path, found.command));
    else await print.text(commandHelp(["caisson", ...found.path], found.command, print.paint));
    return 0;
  },
});

function describe(
  path: string[],
  { summary, options = {}, positionals = [], examples = [] }: Command,
): object {
  return {
    name: path.join(" "),
    summary,
    words: positionals.map(({ name, summary: about }) => ({ name, summary: about })),
    options: Object.entries(options).map(([name, { kind, summary: about }]) => ({
      name,
      kind,
      summary: about,
    })),
    examples,
  };
}
