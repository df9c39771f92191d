import type { Keeper } from "../keeper/index.ts";
import { BubblewrapDriver } from "./bubblewrap/driver.ts";
import type { Driver } from "./driver.ts";

export { chooseDriver, type DriverWish } from "./choose.ts";
export {
  type Attachment,
  type Capability,
  type Driver,
  type Launched,
  type LaunchRecord,
  type LaunchSpec,
  type MountSource,
  nothingShown,
  type Probe,
  type Shown,
} from "./driver.ts";

/** Every driver there is, the fastest of each tier first. */
export function allDrivers(options: { keeper: Keeper; guest: string }): Driver[] {
  return [new BubblewrapDriver(options)];
}
