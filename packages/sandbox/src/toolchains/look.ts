import { readdirSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";

/** Larger files are no lists of versions. */
const maxFileBytes = 64 * 1024;
/** Directories with more entries are not gone through. */
const maxEntries = 4096;

/**
 * Looks at files and remembers what it saw, so that a result can be used again for as long as everything it
 * was made from is as it was. Nothing here throws: what cannot be seen is not there.
 */
export class Look {
  readonly #seen = new Map<string, Stats | undefined>();
  readonly #listings = new Map<string, ReadonlySet<string>>();

  isDirectory(path: string): boolean {
    return this.#status(path)?.isDirectory() ?? false;
  }

  isFile(path: string): boolean {
    return this.#status(path)?.isFile() ?? false;
  }

  /** Is there such a name? Asks for whole directories: one look at each tells later whether anything changed. */
  exists(path: string): boolean {
    const slash = path.lastIndexOf("/");
    return this.#listing(path.slice(0, slash) || "/").has(path.slice(slash + 1));
  }

  /** Without links; undefined when it leads nowhere. */
  real(path: string): string | undefined {
    if (!this.#status(path)) return undefined;
    return realOrNothing(path)[0];
  }

  /** The names in a directory, in order. */
  names(path: string): string[] {
    const names = this.#listing(path);
    return names.size > maxEntries ? [] : [...names].sort();
  }

  /** Where the links in a directory lead, without links. */
  targets(path: string): string[] {
    if (!this.isDirectory(path)) return [];
    try {
      const links = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isSymbolicLink());
      return links.slice(0, maxEntries).flatMap(({ name }) => realOrNothing(`${path}/${name}`));
    } catch {
      return [];
    }
  }

  text(path: string): string {
    const status = this.#status(path);
    if (!status?.isFile() || status.size > maxFileBytes) return "";
    try {
      return readFileSync(path, "utf8");
    } catch {
      return "";
    }
  }

  /** Forgets what only finding needed. */
  finish(): void {
    this.#listings.clear();
  }

  /** Is everything that was looked at as it was? */
  stillHolds(): boolean {
    for (const [path, was] of this.#seen) if (!isSame(status(path), was)) return false;
    return true;
  }

  #listing(path: string): ReadonlySet<string> {
    const known = this.#listings.get(path);
    if (known) return known;
    const listing = new Set(this.isDirectory(path) ? namesIn(path) : []);
    this.#listings.set(path, listing);
    return listing;
  }

  #status(path: string): Stats | undefined {
    const found = status(path);
    this.#seen.set(path, found);
    return found;
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function realOrNothing(path: string): string[] {
  try {
    return [realpathSync.native(path)];
  } catch {
    return [];
  }
}

function status(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** The time of change counts too: a file that was replaced by an older one has another. */
function isSame(now: Stats | undefined, was: Stats | undefined): boolean {
  if (!now || !was) return now === was;
  return (
    now.ino === was.ino && now.ctimeMs === was.ctimeMs && now.mtimeMs === was.mtimeMs && now.dev === was.dev
  );
}
