import { defineCommand } from "../command/command.ts";
import { bashCompletion, fishCompletion, zshCompletion } from "../command/completion.ts";
import { UsageError } from "../command/usage-error.ts";
import { loadGroups } from "./table.ts";

const shells = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

export const command = defineCommand({
  name: "completion",
  summary: "Print completions for a shell",
  positionals: [{ name: "SHELL", summary: "bash, zsh or fish", choices: Object.keys(shells) }],
  examples: [
    { line: "source <(caisson completion bash)", what: "In ~/.bashrc" },
    { line: "source <(caisson completion zsh)", what: "In ~/.zshrc" },
    { line: "caisson completion fish > ~/.config/fish/completions/caisson.fish", what: "For fish" },
  ],
  async run({ options, positionals: [shell], print }) {
    if (!Object.hasOwn(shells, shell!))
      throw new UsageError(`${shell} is not one of ${Object.keys(shells).join(", ")}`);
    const script = shells[shell as keyof typeof shells](
      (await loadGroups()).flatMap(({ commands }) => commands),
    );
    if (options.json) await print.json({ shell, script });
    else await print.text(script);
    return 0;
  },
});
