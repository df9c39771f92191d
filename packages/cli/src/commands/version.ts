import { defineCommand } from "../command/command.ts";

export const command = defineCommand({
  name: "version",
  summary: "Show the versions of daemon and contract",
  async run({ options, client, print }) {
    const { version, build, contract, revision } = await client.system.capabilities();
    if (options.json) await print.json({ version, build, contract, revision });
    else await print.line(`caisson ${version} (build ${build}, contract ${contract} revision ${revision})`);
    return 0;
  },
});
