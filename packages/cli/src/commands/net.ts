import type { NetworkDecision, NetworkState } from "@caisson/client";
import { defineCommand } from "../command/command.ts";
import { UsageError } from "../command/usage-error.ts";
import type { Printer } from "../text/printer.ts";
import { formatSize } from "../text/units.ts";
import { boxId, boxNamed, boxPlace } from "../work/box.ts";
import { networkLimitsText } from "../work/network-limits.ts";
import { networkFrom, networkOptions } from "../work/network-options.ts";
import { presets } from "../work/presets.ts";

const log = defineCommand({
  name: "log",
  summary: "Show what was allowed and refused, and why",
  positionals: [{ ...boxPlace, optional: true }],
  options: {
    refused: { kind: "flag", summary: "Only what was refused" },
    lines: { kind: "int", short: "n", summary: "How many, counted from the latest. Default: 50" },
  },
  async run({ options: { refused, lines = 50, json }, positionals: [name], client, print }) {
    const query = { sandboxId: name === undefined ? undefined : boxId(name), refusedOnly: refused };
    const found: NetworkDecision[] = [];
    for await (const decision of client.network.decisions(query)) {
      if (found.length >= lines) break;
      found.push(decision);
    }
    for (const decision of found.reverse()) {
      if (json) await print.jsonLine(decision);
      else await print.line(lineOf(decision, print, name === undefined));
    }
    return 0;
  },
});

function lineOf(decision: NetworkDecision, print: Printer, withBox: boolean): string {
  const { allowed, name, port, address, reason, rule, count, open, sentBytes, receivedBytes, via } = decision;
  const target = name === "" && port === 0 ? "-" : `${name}:${port}`;
  const bytes = open ? "open" : `${formatSize(sentBytes)} out, ${formatSize(receivedBytes)} in`;
  const what = allowed
    ? `${reason || `by ${rule}`}${address ? `, ${address}, ${bytes}` : ""}`
    : `${reason}${count > 1 ? ` (${count} times)` : ""}`;
  const words = [
    decision.at?.toISOString() ?? "",
    ...(withBox ? [decision.sandboxId] : []),
    allowed ? print.paint("green", "allowed") : print.paint("red", "refused"),
    print.safe(target),
    `(${via})`,
    print.safe(what),
  ];
  return words.join(" ");
}

const set = defineCommand({
  name: "set",
  summary: "Change what a living sandbox may reach, at once",
  positionals: [boxPlace],
  options: {
    ...networkOptions,
    remove: {
      kind: "text",
      many: true,
      value: "RULE",
      summary: "Take a rule or preset away, as it was given",
    },
    clear: { kind: "flag", summary: "Begin without the rules there are" },
  },
  examples: [{ line: "caisson net set work --allow example.com:443", what: "Open one more name" }],
  async run({ options, positionals: [name], client, print }) {
    const network = networkFrom(options);
    if (!network && options.remove.length === 0 && !options.clear)
      throw new UsageError(
        "say what to change: --net, --allow, --deny, --preset, --net-limit, --remove or --clear",
      );
    const change = { ...network, remove: options.remove, clear: options.clear };
    const changed = await boxNamed(client, name!).network.update(change);
    if (options.json) await print.json(changed);
    else {
      await printState(changed, print);
      if (changed.cut > 0) await print.line(`${changed.cut} open connections were cut`);
    }
    return 0;
  },
});

const show = defineCommand({
  name: "show",
  summary: "Show what a sandbox may reach",
  positionals: [boxPlace],
  async run({ options, positionals: [name], client, print }) {
    const state = await boxNamed(client, name!).network.get();
    if (options.json) await print.json(state);
    else {
      await printState(state, print);
      const { connections, sentBytes, receivedBytes } = state;
      await print.line(`${connections} open, ${formatSize(sentBytes)} out, ${formatSize(receivedBytes)} in`);
    }
    return 0;
  },
});

async function printState({ network, presetRules }: NetworkState, print: Printer): Promise<void> {
  await print.line(`network: ${network.mode}`);
  const rows = [
    ...(network.allow ?? []).map((rule) => ["  allow", rule, ""]),
    ...presetRules.map((rule) => ["  allow", rule, `by ${network.presets?.join(", ")}`]),
    ...(network.deny ?? []).map((rule) => ["  deny", rule, ""]),
  ];
  for (const [verb, rule, why] of rows)
    await print.line(`${verb} ${print.safe(rule!)}${why ? ` (${print.safe(why)})` : ""}`);
  await print.line(`limits: ${networkLimitsText(network.limits)}`);
}

export const command = defineCommand({
  name: "net",
  summary: "See and change what sandboxes may reach",
  commands: [log, set, show, presets],
  examples: [
    { line: "caisson net log", what: "What was allowed and refused lately, and why" },
    { line: "caisson net log work --refused", what: "What one sandbox was refused" },
  ],
});
