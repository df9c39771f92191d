import { defineCommand } from "../command/command.ts";
import { resolve } from "../work/spec-options.ts";

const show = defineCommand({
  name: "show",
  summary: "Show the configuration in force and where each value comes from",
  positionals: [
    { name: "DIR", summary: "Project whose file counts. Default: the current directory", optional: true },
  ],
  async run({ options, positionals: [dir = "."], io, client, print }) {
    const config = await client.system.config({ projectDir: resolve(io.cwd, dir) });
    if (options.json) await print.json(config);
    else {
      const rows = config.settings.map(({ key, value, source }) => [
        key,
        print.safe(JSON.stringify(value)),
        print.safe(source),
      ]);
      await print.table(["KEY", "VALUE", "FROM"], rows);
    }
    if (config.untrustedProjectFile) {
      await print.note(
        `${config.untrustedProjectFile} is not trusted and does not count; read it, then \`caisson config trust\``,
      );
    }
    return 0;
  },
});

const trust = defineCommand({
  name: "trust",
  summary: "Trust a project's caisson.yaml as it is now",
  positionals: [{ name: "DIR", summary: "The project. Default: the current directory", optional: true }],
  options: { revoke: { kind: "flag", summary: "Take the trust back" } },
  async run({ options, positionals: [dir = "."], io, client, print }) {
    const trusted = await client.system.trust(resolve(io.cwd, dir), { revoke: options.revoke });
    if (options.json) await print.json(trusted);
    else
      await print.line(
        `${options.revoke ? "no longer trusted" : "trusted"}: ${print.safe(trusted.file)} (sha256 ${trusted.sha256})`,
      );
    return 0;
  },
});

export const command = defineCommand({
  name: "config",
  summary: "Show the configuration; trust a project's file",
  commands: [show, trust],
  examples: [{ line: "caisson config show", what: "Every setting with its source" }],
});
