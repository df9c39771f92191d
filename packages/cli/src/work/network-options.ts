import type { Network } from "@caisson/client";
import type { OptionTable, Values } from "../command/option.ts";

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
} as const satisfies OptionTable;

/** The network that the options describe; undefined if they say nothing about it. */
export function networkFrom(values: Values<typeof networkOptions>): Network | undefined {
  const { net, allow, deny, preset } = values;
  if (net === undefined && allow.length + deny.length + preset.length === 0) return undefined;
  return { mode: net, allow, deny, presets: preset };
}
