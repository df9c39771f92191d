import { defineCommand } from "../command/command.ts";
import { boxId } from "../work/box.ts";
import { untilLeft } from "../work/until-left.ts";

export const command = defineCommand({
  name: "events",
  summary: "Show the numbered log of everything that happened",
  options: {
    follow: { kind: "flag", short: "f", summary: "Wait for more" },
    from: { kind: "int", summary: "Begin after this number. Default: 0, everything that is kept" },
    box: { kind: "text", value: "BOX", summary: "Only events of one sandbox" },
    type: {
      kind: "text",
      many: true,
      value: "PREFIX",
      summary: "Only types that begin so, such as `process.`",
    },
  },
  examples: [
    { line: "caisson events -f --from 120", what: "What comes after number 120, and what follows" },
    { line: "caisson events --type sandbox. --json", what: "One JSON document per line" },
  ],
  run({ options: { follow, from = 0, box, type, json }, io, client, print }) {
    return untilLeft(io, async (signal) => {
      const sandboxId = box === undefined ? undefined : await idOf(box);
      for await (const event of client.events.subscribe({ from, follow, sandboxId, types: type, signal })) {
        if (json) {
          await print.jsonLine(event);
          continue;
        }
        const subject = [event.sandboxId, event.processId].filter(Boolean).join(" ");
        const data = Object.keys(event.data).length > 0 ? JSON.stringify(event.data) : "";
        const words = [event.at?.toISOString() ?? "", event.type, subject, event.actor, data].filter(Boolean);
        await print.line(`${print.paint("dim", String(event.seq))} ${print.safe(words.join(" "))}`);
      }
    });

    async function idOf(word: string): Promise<string> {
      const id = boxId(word);
      return id.startsWith("session:") ? (await client.sandboxes.get(id)).id : id;
    }
  },
});
