import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { resolve } from "../work/spec-options.ts";

const mostBytes = 16 * 1024;

const list = defineCommand({
  name: "ls",
  summary: "List secrets, without their values",
  async run({ options, client, print }) {
    const secrets = await client.secrets.list();
    if (options.json) await print.json(secrets);
    else {
      const rows = secrets.map(({ name, hosts, inject, source, definedIn }) => [
        name,
        print.safe(hosts.join(", ")),
        inject.join(", "),
        print.safe(source),
        definedIn,
      ]);
      await print.table(["NAME", "HOSTS", "INTO", "VALUE FROM", "DEFINED IN"], rows);
    }
    return 0;
  },
});

const set = defineCommand({
  name: "set",
  summary: "Define a secret; its value is read from standard input",
  details:
    "The value is kept in a file of the data directory that only you can read. With --env, --file or --command it is\n" +
    "not kept at all, but read from there when it is needed. It never stands on a command line.",
  positionals: [{ name: "NAME", summary: "Also the variable inside that holds its placeholder" }],
  options: {
    host: {
      kind: "text",
      many: true,
      value: "HOST",
      summary: "A host that gets it, such as api.example.com",
    },
    inject: {
      kind: "choice",
      many: true,
      choices: ["header", "basic", "body"],
      summary: "Where in requests. Default: header and basic",
    },
    env: { kind: "text", value: "VARIABLE", summary: "Read it from a variable of the daemon" },
    file: { kind: "text", value: "FILE", summary: "Read it from a file" },
    command: {
      kind: "text",
      many: true,
      value: "WORD",
      summary: "Read it from a program: one word at a time",
    },
  },
  examples: [
    {
      line: "echo example-token-1 | caisson secret set API_TOKEN --host api.example.com",
      what: "Keep a value",
    },
    {
      line: "caisson secret set NPM_TOKEN --host registry.example.com --file ~/.config/token",
      what: "Refer to a file",
    },
  ],
  async run({ options, positionals: [name], io, client, print }) {
    const { host, inject, env, file, command } = options;
    if (host.length === 0) throw new UsageError("--host is missing: a secret belongs to hosts");
    const referred = env !== undefined || file !== undefined || command.length > 0;
    const value = referred ? undefined : await readValue(io);
    const secret = await client.secrets.set(name!, {
      hosts: host,
      inject,
      value,
      env,
      file: file === undefined || file.startsWith("~/") ? file : resolve(io.cwd, file),
      command: command.length > 0 ? command : undefined,
    });
    if (options.json) await print.json(secret);
    else await print.line(`${secret.name}: ${print.safe(secret.hosts.join(", "))}`);
    return 0;
  },
});

/** A terminal is not asked: what is typed there stays on the screen. */
async function readValue({
  stdin,
}: {
  stdin: { isTerminal: boolean; isEmpty: boolean; read(): AsyncIterable<Uint8Array> };
}) {
  if (stdin.isTerminal || stdin.isEmpty)
    throw new UsageError("the value comes by a pipe, such as `pass show token | caisson secret set …`");
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of stdin.read()) {
    bytes += piece.length;
    if (bytes > mostBytes) throw new UsageError(`a secret has at most ${mostBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces)
    .toString("utf8")
    .replace(/\r?\n$/, "");
}

const remove = defineCommand({
  name: "rm",
  summary: "Remove secrets; sandboxes that have them can use them no more",
  positionals: [{ name: "NAME", summary: "The secret's name", rest: true }],
  async run({ options, positionals, client, print }) {
    for (const name of positionals) {
      await client.secrets.remove(name);
      if (!options.json) await print.line(print.safe(name));
    }
    if (options.json) await print.json({ removed: positionals });
    return 0;
  },
});

export const command = defineCommand({
  name: "secret",
  summary: "Define credentials that never enter a sandbox",
  commands: [list, set, remove],
  examples: [{ line: "caisson secret ls", what: "Which secrets there are, and for which hosts" }],
});
