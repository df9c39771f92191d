// Notices that the sources which this daemon was loaded from are no longer those on disk.
import { type FSWatcher, watch } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Between two looks where changes cannot be watched. */
const lookEveryMs = 10_000;

/** What is not part of the running program. */
const skipped = new Set(["node_modules", "test", "testing"]);

/** Directories of sources and single files, as they were when the daemon started. */
export class Sources {
  readonly #places: readonly string[];
  readonly #since: number;
  readonly #watchers: FSWatcher[] = [];
  #timer: NodeJS.Timeout | undefined;
  #begun: Promise<string> | undefined;
  #looking: Promise<boolean> | undefined;
  #touched = false;
  #touches = 0;
  #changed = false;
  /** Called when something was touched; `changed` says whether it matters. */
  onTouched: () => void = () => {};

  /** `since`: when the program began to load, in milliseconds since the epoch. */
  constructor(places: readonly string[], since: number) {
    this.#places = places;
    this.#since = since;
  }

  /** Remembers what is there and starts to watch it. */
  begin(): Promise<string> {
    this.#begun ??= this.#remember();
    return this.#begun;
  }

  /** Is this daemon older than its sources? At once, unless something was touched since the last look. */
  async changed(): Promise<boolean> {
    if (this.#changed || !this.#touched) return this.#changed;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return await this.#looking;
  }

  /** How often something was touched; the sources are the same while this is. */
  get touches(): number {
    return this.#touches;
  }

  /** What the last look saw. */
  get knownToHaveChanged(): boolean {
    return this.#changed;
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    clearInterval(this.#timer);
  }

  async #remember(): Promise<string> {
    // Each directory is watched before it is looked at, so that no change falls between the two.
    const { print, newest } = await fingerprint(this.#places, (directory) => this.#watch(directory));
    // What was written while we were loading may have been loaded before or after; a time to come says nothing.
    if (newest > this.#since && newest <= Date.now()) this.#changed = true;
    return print;
  }

  #watch(directory: string): void {
    const touched = () => {
      this.#touched = true;
      this.#touches++;
      this.onTouched();
    };
    try {
      const watcher = watch(directory, { persistent: false }, touched);
      watcher.on("error", () => watcher.close());
      this.#watchers.push(watcher);
    } catch {
      // The kernel's bound on watches is reached.
      this.#timer ??= setInterval(touched, lookEveryMs).unref();
    }
  }

  async #look(): Promise<boolean> {
    const begun = await this.begin();
    this.#touched = false;
    const { print } = await fingerprint(this.#places);
    if (print !== begun) this.#changed = true;
    return this.#changed;
  }
}

interface Fingerprint {
  print: string;
  /** The latest change, in milliseconds since the epoch. */
  newest: number;
}

/** Names, sizes and times: enough to tell an edit, a checkout or another installation. */
async function fingerprint(
  places: readonly string[],
  before: (directory: string) => void = () => {},
): Promise<Fingerprint> {
  const lines: string[] = [];
  let newest = 0;
  const note = async (path: string): Promise<void> => {
    const stat = await lstat(path).catch(() => undefined);
    if (!stat) return;
    newest = Math.max(newest, stat.mtimeMs);
    lines.push(`${path} ${stat.size} ${stat.mtimeMs}`);
  };
  const visit = async (dir: string): Promise<void> => {
    before(dir);
    const entries = await readdir(dir, { withFileTypes: true });
    await Promise.all(
      entries.map(async (entry) => {
        const path = join(dir, entry.name);
        if (entry.isDirectory()) return skipped.has(entry.name) ? undefined : await visit(path);
        if (/(?<!\.test)\.ts$|^package\.json$/.test(entry.name)) await note(path);
      }),
    );
  };
  for (const place of places) {
    const isDirectory = (await lstat(place).catch(() => undefined))?.isDirectory();
    if (!isDirectory) before(dirname(place));
    // A directory may vanish while it is read; what is left tells that something changed.
    await (isDirectory ? visit(place) : note(place)).catch(() => {});
  }
  return { print: lines.sort().join("\n"), newest };
}
