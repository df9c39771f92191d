import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import { boxNamed, boxPlace } from "../work/box.ts";
import { untilLeft } from "../work/until-left.ts";

const list = defineCommand({
  name: "ls",
  summary: "List the ports that programs listen on, and the forwards",
  positionals: [boxPlace],
  async run({ options, positionals: [name], client, print }) {
    const { ports } = boxNamed(client, name!);
    const [listening, forwards] = await Promise.all([ports.list(), ports.forwards()]);
    if (options.json) {
      await print.json({ ports: listening, forwards });
      return 0;
    }
    await print.table(
      ["PORT", "ADDRESS", "PROCESS"],
      listening.map(({ port, address, pid, command }) => [
        String(port),
        address,
        command ? `${print.safe(command)} (${pid})` : "",
      ]),
    );
    if (forwards.length === 0) return 0;
    await print.line("");
    await print.table(
      ["FORWARD", "FROM", "TO", "KIND"],
      forwards.map(({ id, hostPort, url, port, kind }) => [
        id,
        url ?? `127.0.0.1:${hostPort}`,
        String(port),
        kind,
      ]),
    );
    return 0;
  },
});

const wait = defineCommand({
  name: "wait",
  summary: "Wait until a program listens on a port",
  positionals: [boxPlace, { name: "PORT", summary: "In the sandbox" }],
  options: { timeout: { kind: "duration", summary: "How long. Default: 30s" } },
  async run({ options, positionals: [name, port], client, print }) {
    const found = await boxNamed(client, name!).ports.wait(portNumber(port!), { timeout: options.timeout });
    if (options.json) await print.json(found);
    return 0;
  },
});

const forward = defineCommand({
  name: "forward",
  summary: "Lead a port of this machine's loopback to a port in a sandbox",
  details:
    "`8080:80` leads 127.0.0.1:8080 to port 80 inside; `8080` leads to the same port; `:80` takes a free one. It is\n" +
    "open until Ctrl-C, or with --detach until the sandbox has ended.",
  positionals: [boxPlace, { name: "[HOST:]PORT", summary: "Where from, and where to" }],
  options: {
    preview: {
      kind: "flag",
      summary: "For a browser: HTTP and WebSockets, at an address that nobody can guess",
    },
    detach: { kind: "flag", short: "d", summary: "Leave it open and return" },
  },
  examples: [
    {
      line: "caisson port forward work 8080:80",
      what: "http://127.0.0.1:8080 is port 80 of the session `work`",
    },
    { line: "caisson port forward work 5173 --preview", what: "A development server in the browser" },
  ],
  async run({ options, positionals: [name, places], io, client, print }) {
    const { hostPort, port } = placesOf(places!, options.preview ?? false);
    const { ports } = boxNamed(client, name!);
    const tell = async (opened: Awaited<ReturnType<typeof ports.forward>>) => {
      if (options.json) await print.json(opened.info);
      else await print.line(opened.url ?? `127.0.0.1:${opened.hostPort}`);
    };
    const { preview, detach } = options;
    if (detach) {
      await tell(await ports.forward(port, { hostPort, preview, detach }));
      return 0;
    }
    return untilLeft(io, async (signal) => {
      const opened = await ports.forward(port, { hostPort, preview, signal });
      await tell(opened);
      await opened.closed;
      if (!signal.aborted) await print.note("the forward was closed");
    });
  },
});

const close = defineCommand({
  name: "close",
  summary: "Close forwards",
  positionals: [boxPlace, { name: "FORWARD", summary: "As `caisson port ls` names it", rest: true }],
  async run({ options, positionals: [name, ...ids], client, print }) {
    const { ports } = boxNamed(client, name!);
    for (const id of ids) {
      await ports.close(id);
      if (!options.json) await print.line(print.safe(id));
    }
    if (options.json) await print.json({ closed: ids });
    return 0;
  },
});

export const command = defineCommand({
  name: "port",
  summary: "Reach what listens in a sandbox",
  commands: [list, wait, forward, close],
  examples: [{ line: "caisson port wait work 8080", what: "Go on when the server is up" }],
});

/** `HOST:PORT`, `:PORT`, or one number for both; a preview has a free port unless one is named. */
function placesOf(word: string, preview: boolean): { hostPort: number; port: number } {
  const [first, second, ...more] = word.split(":");
  if (more.length > 0) throw new UsageError(`${word} is no pair of ports`);
  if (second === undefined) {
    const port = portNumber(first!);
    return { hostPort: preview ? 0 : port, port };
  }
  return { hostPort: first === "" ? 0 : portNumber(first!), port: portNumber(second) };
}

function portNumber(word: string): number {
  const port = /^[0-9]{1,5}$/.test(word) ? Number(word) : 0;
  if (port < 1 || port > 65_535) throw new UsageError(`${word} is no port`);
  return port;
}
