import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { boxNamed, boxPlace } from "../work/box.ts";

export const command = defineCommand({
  name: "extend",
  summary: "Change how long a sandbox may live",
  positionals: [boxPlace],
  options: {
    "idle-ttl": { kind: "duration", summary: "End it when nothing has run in it for so long" },
    "max-age": { kind: "duration", summary: "End it at this age, counted from its creation" },
  },
  examples: [{ line: "caisson extend work --idle-ttl 8h", what: "Keep it over a working day" }],
  async run({ options, positionals: [name], client, print }) {
    const change = { idleTtl: options["idle-ttl"], maxAge: options["max-age"] };
    if (!change.idleTtl && !change.maxAge)
      throw new UsageError("say what to change: --idle-ttl or --max-age");
    const sandbox = await boxNamed(client, name!).extend(change);
    if (options.json) await print.json(sandbox);
    else
      await print.line(
        sandbox.expiresAt ? `${sandbox.id} lives until ${sandbox.expiresAt.toISOString()}` : sandbox.id,
      );
    return 0;
  },
});
