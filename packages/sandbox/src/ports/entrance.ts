import type { Duplex } from "node:stream";

/** Opens a connection to the port inside. */
export type Dial = () => Promise<Duplex>;

/** A port of this machine that leads into a sandbox. */
export interface Entrance {
  readonly hostPort: number;
  /** Nobody comes in any more, and whoever is in is cut off. */
  close(): void;
}
