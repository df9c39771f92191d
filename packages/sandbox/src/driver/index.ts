import type { Keeper } from "../keeper/index.ts";
import { BubblewrapDriver } from "./bubblewrap/driver.ts";
import { DockerDriver } from "./docker/driver.ts";
import type { Driver } from "./driver.ts";
import { FirecrackerDriver } from "./firecracker/driver.ts";
import { QemuDriver } from "./qemu/driver.ts";
import { RunscDriver } from "./runsc/driver.ts";

export { chooseDriver, type DriverWish } from "./choose.ts";
export { engineSocket } from "./docker/socket.ts";
export type {
  Attachment,
  Capability,
  Driver,
  Launched,
  LaunchRecord,
  LaunchSpec,
  MountSource,
  Probe,
} from "./driver.ts";

export interface DriverOptions {
  keeper: Keeper;
  /** The guest binary on the host. */
  guest: string;
  /** The data directory. */
  home: string;
  /** Where a Docker engine is asked; throws with a clear word. */
  engineSocket(): string;
  microvm: MicrovmOptions;
}

export interface MicrovmOptions {
  /** A directory of the daemon's alone, for images and templates. */
  store: string;
  /** Of each machine. */
  memoryBytes?: number;
  /** Where `firecracker` and `jailer` are looked for first. */
  programs?: string;
  /** Told while something takes long. */
  progress?: (words: string) => void;
}

/** Every driver there is, the fastest of each tier first. */
export function allDrivers(options: DriverOptions): Driver[] {
  const { keeper, guest, home, engineSocket, microvm } = options;
  return [
    new BubblewrapDriver({ keeper, guest }),
    new DockerDriver({ keeper, guest, home, engineSocket }),
    new RunscDriver({ keeper, guest, home }),
    new FirecrackerDriver({ keeper, guest, ...microvm }),
    new QemuDriver({ keeper, guest, ...microvm }),
  ];
}
