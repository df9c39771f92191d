import { defineCommand } from "../command/command.ts";

const verify = defineCommand({
  name: "verify",
  summary: "Check that the trail of events has not been changed",
  options: { from: { kind: "int", summary: "Begin after this number. Default: 0" } },
  examples: [
    { line: "caisson audit verify", what: "Check the whole trail; keep the printed hash elsewhere" },
  ],
  async run({ options: { from, json }, client, print }) {
    const report = await client.events.verify({ from });
    if (json) await print.json(report);
    else if (report.intact) {
      await print.line(
        `${report.checked} events are intact; the last one's hash is ${Buffer.from(report.head).toString("hex")}`,
      );
    } else {
      await print.line(`event ${report.brokenAt} does not fit: ${print.safe(report.reason)}`);
    }
    return report.intact ? 0 : 1;
  },
});

export const command = defineCommand({
  name: "audit",
  summary: "Verify who did what",
  commands: [verify],
});
