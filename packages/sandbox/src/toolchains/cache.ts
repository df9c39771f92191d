import type { Surroundings } from "@caisson/contract";
import type { ToolchainSet } from "./find.ts";
import { Look } from "./look.ts";

/** More than a person's shells have. */
const maxKept = 32;

/** Finds toolchains, and finds them again only when something that was looked at has changed. */
export class Toolchains {
  readonly #data: string;
  readonly #own: Surroundings;
  readonly #kept = new Map<string, { look: Look; set: ToolchainSet }>();

  /** `data` is the daemon's own directory; `own` is for callers that bring no surroundings. */
  constructor(data: string, own: Surroundings) {
    this.#data = data;
    this.#own = own;
  }

  /** Something that was found could not be handed in: look again. */
  forget(): void {
    this.#kept.clear();
  }

  /** Undefined where there is no home directory to go by. The rules are loaded when somebody first asks. */
  async find({ path, home }: Surroundings = this.#own): Promise<ToolchainSet | undefined> {
    if (!home.startsWith("/") || home === "/") return undefined;
    const key = `${home}\0${path}`;
    const kept = this.#kept.get(key);
    if (kept?.look.stillHolds()) return kept.set;
    this.#kept.delete(key);
    const { findToolchains } = await import("./find.ts");
    const look = new Look();
    const set = findToolchains({ home: withoutSlash(home), path: entriesOf(path) }, this.#data, look);
    look.finish();
    if (this.#kept.size >= maxKept) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, { look, set });
    return set;
  }
}

function entriesOf(path: string): string[] {
  return [...new Set(path.split(":").map(withoutSlash))].filter((entry) => entry.startsWith("/"));
}

function withoutSlash(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}
