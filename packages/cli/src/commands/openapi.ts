import { defineCommand } from "../command/command.ts";

export const command = defineCommand({
  name: "openapi",
  summary: "Print the API's description as OpenAPI 3.1",
  examples: [{ line: "caisson openapi > openapi.json", what: "For generators and validators" }],
  async run({ host, print }) {
    const text = await host.openapi();
    await print.text(text.endsWith("\n") ? text : `${text}\n`);
    return 0;
  },
});
