import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Address } from "./addresses.ts";
import type { Host } from "./host.ts";

/** In which way a program came: by CONNECT, by a plain request to the proxy, by SOCKS5, or without knowing. */
export type Via = "connect" | "http" | "socks" | "transparent";

/** A target that was judged, with the addresses that may be dialled. */
export interface Admitted {
  host: Host;
  port: number;
  via: Via;
  addresses: readonly Address[];
  rule: string;
  /** A person or a policy said yes to it; it is in no rule. */
  answered: boolean;
}

/** A program's side of things: one connection that it has made. */
export interface Client {
  stream: Duplex;
  flows: Set<Flow>;
  /** Of the monotonic clock. */
  lastActive: number;
}

/** One open connection to the outside. */
export interface Flow {
  /** Distinguishes it within its sandbox and daemon. */
  id: string;
  target: Admitted;
  address: Address;
  socket: Socket;
  client: Client;
  sent: number;
  received: number;
  openedAt: number;
  /** Why it was ended by us, if it was. */
  cut: string;
  /** Counts what passes. */
  count(direction: "sent" | "received", bytes: number): void;
}
