import type { Network } from "@caisson/client";
import type { OptionTable, Values } from "../command/option.ts";
import { readNetworkLimits } from "./network-limits.ts";

/** What a sandbox may reach: the options that `run`, `create` and `net set` share. */
export const networkOptions = {
  net: {
    kind: "choice",
    choices: ["off", "allow", "ask", "on"],
    summary: "What it may reach: nothing, what rules allow, ask for the rest, or everything public",
  },
  allow: {
    kind: "text",
    many: true,
    value: "NAME[:PORT]",
    summary: "Allow a name, `*.name`, an address or a range; without --net it means --net allow",
  },
  deny: { kind: "text", many: true, value: "NAME[:PORT]", summary: "Deny it, whatever is allowed" },
  preset: {
    kind: "text",
    many: true,
    value: "NAME",
    summary: "Allow what your own npm, pip, cargo, go, maven or git is configured for",
  },
  "net-limit": {
    kind: "text",
    many: true,
    value: "LIMIT=VALUE",
    summary: "Bound its connections: connections=100, rate=20, bytes=1g, idle=30s, connect=5s",
  },
} as const satisfies OptionTable;

/** The network that the options describe; undefined if they say nothing about it. */
export function networkFrom(values: Values<typeof networkOptions>): Network | undefined {
  const { net, allow, deny, preset } = values;
  const limits = readNetworkLimits(values["net-limit"]);
  if (net === undefined && !limits && allow.length + deny.length + preset.length === 0) return undefined;
  return { mode: net, allow, deny, presets: preset, limits };
}
