import type { FindingLevel } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import type { Style } from "../text/style.ts";

const marks: Record<FindingLevel, [string, Style]> = {
  ok: ["ok", "green"],
  warning: ["warning", "yellow"],
  problem: ["problem", "red"],
};

export const command = defineCommand({
  name: "doctor",
  summary: "Say what is missing on this machine and what mends it",
  examples: [{ line: "caisson doctor", what: "Exits with 1 if there is a problem" }],
  async run({ options, client, print }) {
    const findings = await client.system.diagnose();
    if (options.json) await print.json(findings);
    else {
      for (const { subject, level, message, fix } of findings) {
        const [word, style] = marks[level] ?? [level, "yellow"];
        await print.line(
          `${print.paint(style, word.padEnd(8))} ${print.safe(subject)}: ${print.safe(message)}`,
        );
        if (fix) await print.line(`         ${print.paint("bold", print.safe(fix))}`);
      }
    }
    return findings.some(({ level }) => level === "problem") ? 1 : 0;
  },
});
