import { rules } from "./rules.ts";

/** Every whole number of the rules by its dotted name, as capabilities advertise them. */
export function advertisedLimits(): Record<string, bigint> {
  const limits: Record<string, bigint> = {};
  for (const section of ["paths", "sizes", "times", "link", "retry"] as const) {
    for (const [name, value] of Object.entries(rules[section])) {
      if (typeof value === "number" && Number.isInteger(value)) limits[`${section}.${name}`] = BigInt(value);
    }
  }
  return limits;
}
