import type { Client } from "@caisson/client";
import type { Surroundings } from "@caisson/contract";

/** More than a person's shells have. */
const maxKept = 32;

/** One client for each PATH and home directory that command lines come from: their calls say where they are. */
export class Clients {
  readonly #open: (surroundings?: Surroundings) => Promise<Client>;
  readonly #kept = new Map<string, Client | Promise<Client>>();

  constructor(open: (surroundings?: Surroundings) => Promise<Client>) {
    this.#open = open;
  }

  /** By a command line's variables. */
  for({ PATH, HOME }: Readonly<Record<string, string>>): Client | Promise<Client> {
    const key = `${HOME}\0${PATH}`;
    const kept = this.#kept.get(key);
    if (kept) return kept;
    const opening = this.#open(PATH && HOME ? { path: PATH, home: HOME } : undefined);
    if (this.#kept.size >= maxKept) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, opening);
    opening.then(
      (client) => this.#kept.set(key, client),
      () => this.#kept.delete(key),
    );
    return opening;
  }
}
