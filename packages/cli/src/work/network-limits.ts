import type { NetworkLimits } from "@caisson/client";
import { readValue } from "../command/option.ts";
import { UsageError } from "../command/usage-error.ts";
import { formatDuration, formatSize } from "../text/units.ts";

/** As people write them, and as the API calls them. */
const limits = {
  connections: { key: "connections", kind: "int" },
  rate: { key: "connectionsPerSecond", kind: "int" },
  bytes: { key: "bytes", kind: "size" },
  idle: { key: "idleTimeout", kind: "duration" },
  connect: { key: "connectTimeout", kind: "duration" },
} as const satisfies Record<string, { key: keyof NetworkLimits; kind: "int" | "size" | "duration" }>;

const names = Object.keys(limits) as (keyof typeof limits)[];

/** What `--net-limit` says, each `NAME=VALUE`. */
export function readNetworkLimits(texts: readonly string[]): NetworkLimits | undefined {
  if (texts.length === 0) return undefined;
  const found: NetworkLimits = {};
  for (const text of texts) {
    const [name, value = ""] = text.split(/=(.*)/s);
    const limit = names.find((known) => known === name);
    if (!limit || value === "")
      throw new UsageError(
        `--net-limit: ${text} is not one of ${names.map((known) => `${known}=…`).join(", ")}`,
      );
    const { key, kind } = limits[limit];
    const number = readValue(`net-limit ${limit}`, { kind, summary: "" }, value) as number;
    if (number === 0) throw new UsageError(`--net-limit: ${limit} must be more than 0`);
    found[key] = number;
  }
  return found;
}

/** Those in force, as they are written. */
export function networkLimitsText(values: NetworkLimits = {}): string {
  const words = names.flatMap((name) => {
    const { key, kind } = limits[name];
    const value = values[key];
    if (!value) return [];
    const text = kind === "size" ? formatSize(value) : kind === "duration" ? formatDuration(value) : value;
    return [`${name}=${text}`];
  });
  return words.join(", ");
}
