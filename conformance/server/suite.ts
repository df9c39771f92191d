// Cases: an id, a sentence of what must hold, and a function that throws if it does not.
import { isDeepStrictEqual } from "node:util";
import type { Server } from "./server.ts";

export interface Case {
  /** `group.name`, never changed once published. */
  id: string;
  /** What a server must do. */
  must: string;
  /** Where it can be asked for; `tcp` needs a server on the network. Default: anywhere. */
  on?: "tcp" | "socket";
  run(server: Server): Promise<void>;
}

export class Unmet extends Error {}

export function expect(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Unmet(what);
}

export function same(seen: unknown, wanted: unknown, what: string): void {
  if (!isDeepStrictEqual(seen, wanted)) throw new Unmet(`${what}: ${show(seen)} instead of ${show(wanted)}`);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
