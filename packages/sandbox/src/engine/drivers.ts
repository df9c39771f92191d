import { create } from "@bufbuild/protobuf";
import { type DriverInfo, DriverInfoSchema } from "@caisson/contract";
import type { Driver } from "../driver/driver.ts";

/** Every driver, and whether it is usable here. */
export function describeDrivers(drivers: readonly Driver[]): Promise<DriverInfo[]> {
  return Promise.all(
    drivers.map(async (driver) => {
      const {
        usable,
        reason = "",
        fix = "",
      } = await driver.probe().catch((error: unknown) => ({ usable: false, reason: String(error), fix: "" }));
      return create(DriverInfoSchema, {
        name: driver.name,
        tier: driver.tier,
        usable,
        reason,
        fix,
        capabilities: [...driver.capabilities],
        preparing: driver.preparing ?? "",
      });
    }),
  );
}
