import type { Client } from "@caisson/client";
import type { Surroundings } from "@caisson/contract";

/** More than a person's shells have. */
const maxKept = 32;

type Open = (surroundings?: Surroundings, traceparent?: string) => Promise<Client>;

/** One client for each PATH and home directory that command lines come from: their calls say where they are. */
export class Clients {
  readonly #open: Open;
  readonly #kept = new Map<string, Client | Promise<Client>>();

  constructor(open: Open) {
    this.#open = open;
  }

  /** By a command line's variables. */
  for({ PATH, HOME, TRACEPARENT }: Readonly<Record<string, string>>): Client | Promise<Client> {
    const surroundings = PATH && HOME ? { path: PATH, home: HOME } : undefined;
    // No two command lines belong to the same span.
    if (TRACEPARENT) return this.#open(surroundings, TRACEPARENT);
    const key = `${HOME}\0${PATH}`;
    const kept = this.#kept.get(key);
    if (kept) return kept;
    const opening = this.#open(surroundings);
    if (this.#kept.size >= maxKept) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, opening);
    opening.then(
      (client) => this.#kept.set(key, client),
      () => this.#kept.delete(key),
    );
    return opening;
  }
}
