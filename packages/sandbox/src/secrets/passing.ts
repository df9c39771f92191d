// What is done to a request and its answer on their way, whichever version of HTTP carries them.
import { type Pairs, passedOn } from "../egress/http/headers.ts";
import { type Destination, type Injector, newTally, type Tally } from "./injector.ts";
import { type Replacement, replaceAll } from "./replacing.ts";

/** One request of a program to a host that gets secrets. */
export class Passage {
  readonly #to: Destination;
  readonly #injector: Injector;
  readonly #tell: (tally: Tally) => void;
  readonly #tally = newTally();

  constructor(to: Destination, injector: Injector, tell: (tally: Tally) => void) {
    this.#to = to;
    this.#injector = injector;
    this.#tell = tell;
  }

  path(path: string): string {
    return this.#injector.path(path, this.#to, this.#tally);
  }

  /** Headers as they leave. The answer is asked for uncompressed, so that it can be looked through. */
  headers(pairs: Pairs): Pairs {
    const filled = this.#injector.headers(passedOn(pairs), this.#to, this.#tally);
    const unwanted = ["accept-encoding", "grpc-accept-encoding", "expect"];
    // Asked for in parts, an answer that holds a value would hold it in none of them.
    if (this.#tally.used.size > 0) unwanted.push("range", "if-range");
    this.#tell(this.#tally);
    const kept = filled.filter(([name]) => !unwanted.includes(name.toLowerCase()));
    return [...kept, ["Accept-Encoding", "identity"]];
  }

  /** What is replaced in a body, and whom to tell of it; nothing where it is compressed. */
  body(type = "", encoding?: string): { list: Replacement[]; found(replacement: Replacement): void } {
    if (encoding !== undefined) return { list: [], found: () => {} };
    const wanted = this.#injector
      .body(type, this.#to)
      // A message of gRPC begins with its length.
      .filter(({ replacement: { from, to } }) => !isGrpc(type) || from.length === to.length);
    return {
      list: wanted.map(({ replacement }) => replacement),
      found: (replacement) => {
        const { secret, puts } = wanted.find((each) => each.replacement === replacement)!;
        (puts ? this.#tally.used : this.#tally.stripped).add(secret);
        this.#tell(this.#tally);
      },
    };
  }

  /** What is taken out of the answer. */
  masks(): Replacement[] {
    return this.#injector.masks(this.#to, this.#tally);
  }
}

export function isGrpc(type: string): boolean {
  return /^application\/grpc\b/i.test(type);
}

/** An answer's headers for the program. */
export function cleaned(pairs: Pairs, masks: readonly Replacement[]): Pairs {
  return passedOn(pairs).map(([name, value]) => [name, masked(value, masks)]);
}

/** Header bytes are Latin-1; values are found by their bytes. */
export function masked(text: string, masks: readonly Replacement[]): string {
  return replaceAll(Buffer.from(text, "latin1"), masks).toString("latin1");
}

export function without(pairs: Pairs, ...names: string[]): Pairs {
  return pairs.filter(([key]) => !names.includes(key.toLowerCase()));
}
