import { CaissonError } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import type { DaemonControl, Host } from "../io/host.ts";
import { Neutraliser } from "../text/neutralise.ts";
import { formatAge } from "../text/units.ts";
import { untilLeft } from "../work/until-left.ts";

/** A daemon this young was started by the very call that asks for a restart. */
const youngMs = 5000;

const start = defineCommand({
  name: "start",
  summary: "Start the daemon if it is not running",
  async run({ options, host, print }) {
    // The launcher has started it before this could run.
    const status = control(host).status();
    if (options.json) await print.json(status);
    else await print.line(`running (pid ${status.pid})`);
    return 0;
  },
});

const stop = defineCommand({
  name: "stop",
  summary: "Stop the daemon; sandboxes and their commands live on",
  async run({ options, host, print }) {
    const daemon = control(host);
    const { pid } = daemon.status();
    daemon.stop();
    if (options.json) await print.json({ stopping: pid });
    else await print.line(`stopping (pid ${pid})`);
    return 0;
  },
});

const restart = defineCommand({
  name: "restart",
  summary: "Stop the daemon and start it again; sandboxes and their commands live on",
  async run({ options, host, print }) {
    const daemon = control(host);
    const status = daemon.status();
    if (Date.now() - status.startedAt.getTime() > youngMs) {
      await daemon.restart();
      return 0;
    }
    if (options.json) await print.json(status);
    else await print.line(`running (pid ${status.pid})`);
    return 0;
  },
});

const status = defineCommand({
  name: "status",
  summary: "Say whether the daemon runs, and how it is",
  async run({ options, host, client, print }) {
    const daemon = host.daemon?.status();
    const health = await client.system.health();
    if (options.json) {
      await print.json({ ...daemon, ...health });
      return health.ready ? 0 : 1;
    }
    const state = health.ready ? print.paint("green", "ready") : print.paint("yellow", "not ready");
    const rows = [["state", state], ...health.troubles.map((trouble) => ["trouble", trouble])];
    if (daemon) {
      rows.push(
        ["pid", String(daemon.pid)],
        ["version", `${daemon.version} (${daemon.build})`],
        ["running for", formatAge(daemon.startedAt)],
        ["data", daemon.dataDirectory],
        ["socket", daemon.socket],
        ["network", daemon.listening.join(", ") || "not listening"],
      );
    }
    await print.rows(rows);
    return health.ready ? 0 : 1;
  },
});

const logs = defineCommand({
  name: "logs",
  summary: "Show the daemon's own log",
  options: {
    follow: { kind: "flag", short: "f", summary: "Wait for more" },
    lines: { kind: "int", short: "n", summary: "How many of the last lines. Default: 100" },
  },
  run({ options: { follow, lines = 100 }, host, io }) {
    const daemon = control(host);
    return untilLeft(io, async (signal) => {
      const clean = io.stdout.isTerminal ? new Neutraliser() : undefined;
      for await (const bytes of daemon.logs({ lines, follow, signal }))
        await io.stdout.write(clean?.push(bytes) ?? bytes);
    });
  },
});

function control(host: Host): DaemonControl {
  if (host.daemon) return host.daemon;
  throw new CaissonError(
    "UNAVAILABLE",
    "CAISSON_URL names a daemon elsewhere, which is not started or stopped from here",
  );
}

export const command = defineCommand({
  name: "daemon",
  summary: "Start, stop and look after the daemon",
  commands: [start, stop, restart, status, logs],
  examples: [{ line: "caisson daemon logs -f", what: "Follow the daemon's own log" }],
});
