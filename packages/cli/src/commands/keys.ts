import { defineCommand } from "../command/command.ts";
import { formatAge } from "../text/units.ts";

const create = defineCommand({
  name: "create",
  summary: "Make a key; its secret is printed this once",
  details:
    "A key sees what was made with it: its own sandboxes, sessions, snapshots and events. With the scope `all`, or\n" +
    "`admin`, it sees those of all others too.",
  positionals: [{ name: "NAME", summary: "1 to 64 letters, digits, `.`, `_` or `-`" }],
  options: {
    scope: {
      kind: "choice",
      many: true,
      choices: ["read", "write", "approve", "admin", "all"],
      summary: "What it may do. Default: read and write",
    },
    ttl: { kind: "duration", summary: "When it expires. Default: never" },
  },
  async run({ options, positionals: [name], client, print }) {
    const key = await client.keys.create(name!, { scopes: options.scope, ttl: options.ttl });
    if (options.json) await print.json(key);
    else {
      await print.line(key.secret);
      await print.note("this is shown once; clients use it as CAISSON_KEY");
      if (!key.scopes.some((scope) => scope === "all" || scope === "admin"))
        await print.note("it sees only what is made with it; with `--scope all` it would see everything");
    }
    return 0;
  },
});

const list = defineCommand({
  name: "ls",
  summary: "List keys",
  async run({ options, client, print }) {
    const keys = await client.keys.list();
    if (options.json) await print.json(keys);
    else {
      const rows = keys.map((key) => [
        key.name,
        key.scopes.join(","),
        formatAge(key.createdAt),
        key.expiresAt?.toISOString() ?? "never",
        key.lastUsedAt ? `${formatAge(key.lastUsedAt)} ago` : "never",
      ]);
      await print.table(["NAME", "SCOPES", "AGE", "EXPIRES", "LAST USED"], rows);
    }
    return 0;
  },
});

const revoke = defineCommand({
  name: "revoke",
  summary: "Make keys worthless from now on",
  positionals: [{ name: "NAME", summary: "The key's name", rest: true }],
  async run({ options, positionals, client, print }) {
    for (const name of positionals) {
      await client.keys.revoke(name);
      if (!options.json) await print.line(print.safe(name));
    }
    if (options.json) await print.json({ revoked: positionals });
    return 0;
  },
});

export const command = defineCommand({
  name: "keys",
  summary: "Make, list and revoke keys for the network",
  commands: [create, list, revoke],
  examples: [
    {
      line: "caisson keys create ci --scope read --scope all --ttl 30d",
      what: "A key that may only look, for a month",
    },
  ],
});
