import { create } from "@bufbuild/protobuf";
import { type Network, NetworkMode, NetworkSchema } from "@caisson/contract";
import type { SpecInit } from "@caisson/sandbox";
import type { Sourced } from "./config.ts";
import type { SettingKey } from "./settings.ts";

const modes: Readonly<Record<string, NetworkMode>> = {
  off: NetworkMode.OFF,
  allow: NetworkMode.ALLOW,
  ask: NetworkMode.ASK,
  on: NetworkMode.ON,
};

/**
 * What a sandbox may reach: the request's mode wins, then the configuration's, then the profile's. The configuration's rules
 * come on top of the request's, and open nothing by themselves where the network is off.
 */
export function completeNetwork(
  asked: SpecInit["network"],
  values: ReadonlyMap<SettingKey, Sourced>,
  profileMode: string,
): Network {
  const network = create(NetworkSchema, asked);
  const list = (key: SettingKey) => values.get(key)!.value as string[];
  network.deny.push(...list("sandbox.network_deny"));
  const configured = modes[values.get("sandbox.network")!.value as string] ?? NetworkMode.UNSPECIFIED;
  const names = network.allow.length + network.presets.length > 0;
  // Whoever names what to reach and says nothing else wants to reach it.
  const implied = names && (configured || modes[profileMode]) === NetworkMode.OFF;
  network.mode ||= implied ? NetworkMode.ALLOW : configured;
  if ((network.mode || modes[profileMode]) === NetworkMode.OFF) return network;
  network.allow.push(...list("sandbox.network_allow"));
  network.presets.push(...list("sandbox.network_presets"));
  return network;
}
