import { Tier } from "@caisson/contract";
import { CaissonError } from "@caisson/contract/errors";
import type { Capability, Driver } from "./driver.ts";

/** What a sandbox asks for. */
export interface DriverWish {
  /** The least isolation that is acceptable; unspecified means container. `STRONGEST`: the best that is usable. */
  minimumTier: Tier;
  /** A driver by name, or empty. */
  driver: string;
  /** Capabilities that it must have. */
  needs?: readonly Capability[];
}

/**
 * The fastest usable driver at or above the minimum tier, or the one that was named if it is. Never one
 * below: where there is none, the error says why of each.
 *
 * @param drivers all there are, the fastest of each tier first
 */
export async function chooseDriver(drivers: readonly Driver[], wish: DriverWish): Promise<Driver> {
  const strongest = wish.minimumTier === Tier.STRONGEST;
  const minimum = wish.minimumTier === Tier.UNSPECIFIED || strongest ? Tier.CONTAINER : wish.minimumTier;
  const refusals: string[] = [];
  for (const driver of candidates(drivers, wish.driver, strongest)) {
    if (driver.tier < minimum) {
      refusals.push(`${driver.name} is below the tier ${tierName(minimum)}`);
      continue;
    }
    const lacks = (wish.needs ?? []).filter((need) => !driver.capabilities.includes(need));
    if (lacks.length > 0) {
      refusals.push(`${driver.name} cannot do: ${lacks.join(", ")}`);
      continue;
    }
    const probe = await driver.probe();
    // Whether a machine is emulated is known once it was tried.
    if (strongest && probe.usable) await driver.tryHardware?.();
    if (strongest && driver.capabilities.includes("emulated")) {
      refusals.push(`${driver.name} is emulated, which never counts as the strongest`);
      continue;
    }
    if (probe.usable) return driver;
    refusals.push(
      `${driver.name}: ${probe.reason ?? "not usable here"}${probe.fix ? ` (${probe.fix})` : ""}`,
    );
  }
  if (refusals.length === 0) refusals.push("there are no drivers");
  throw new CaissonError("NO_DRIVER", `no driver fits: ${refusals.join("; ")}`, {
    metadata: {
      minimum_tier: tierName(wish.minimumTier || Tier.CONTAINER),
      ...(wish.driver === "" ? {} : { driver: wish.driver }),
    },
  });
}

/** The weakest tier first: the less there is in between, the faster it is. Or the strongest first. */
function candidates(drivers: readonly Driver[], name: string, strongest: boolean): Driver[] {
  if (name === "") {
    return drivers.toSorted((one, other) => (strongest ? other.tier - one.tier : one.tier - other.tier));
  }
  const named = drivers.filter((driver) => driver.name === name);
  if (named.length > 0) return named;
  const known = drivers.map((driver) => driver.name).join(", ");
  throw new CaissonError("NO_DRIVER", `there is no driver "${name.slice(0, 64)}"; there are: ${known}`);
}

function tierName(tier: Tier): string {
  const found = Object.entries(Tier).find(([, number]) => number === tier);
  return found?.[0].toLowerCase() ?? String(tier);
}
