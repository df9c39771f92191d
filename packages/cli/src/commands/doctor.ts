import type { FindingLevel } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import type { Style } from "../text/style.ts";
import { tellPreparing } from "../work/preparing.ts";
import { printTiers, tierRows } from "../work/tier-table.ts";

const marks: Record<FindingLevel, [string, Style]> = {
  ok: ["ok", "green"],
  warning: ["warning", "yellow"],
  problem: ["problem", "red"],
};

export const command = defineCommand({
  name: "doctor",
  summary: "Say what is missing on this machine and what mends it, and what each tier takes here",
  options: {
    quick: { kind: "flag", summary: "Measure nothing" },
  },
  examples: [
    { line: "caisson doctor", what: "Exits with 1 if there is a problem" },
    { line: "caisson doctor --quick --json", what: "For programs, without making a sandbox of each kind" },
  ],
  async run({ options, client, io, print }) {
    const findings = await client.system.diagnose();
    const tiers = await tellPreparing(io, client, tierRows(client, !options.quick));
    if (options.json) await print.json({ findings, tiers });
    else {
      for (const { subject, level, message, fix } of findings) {
        // Drivers are in the table below.
        if (subject.startsWith("driver ") && level !== "problem") continue;
        const [word, style] = marks[level] ?? [level, "yellow"];
        await print.line(
          `${print.paint(style, word.padEnd(8))} ${print.safe(subject)}: ${print.safe(message)}`,
        );
        if (fix) await print.line(`         ${print.paint("bold", print.safe(fix))}`);
      }
      await print.line("");
      await printTiers(print, tiers);
    }
    return findings.some(({ level }) => level === "problem") ? 1 : 0;
  },
});
