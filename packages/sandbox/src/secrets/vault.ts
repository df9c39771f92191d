import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { CaissonError } from "@caisson/contract";
import { parseDefinition, type SecretDefinition } from "./definition.ts";

interface Entry {
  /** As in the configuration; `stored` for one whose value is kept here. */
  definition: Record<string, unknown>;
  value?: string;
}

/** Secrets that were set by command: one file of the daemon's owner alone. */
export class Vault {
  readonly #path: string;
  #entries: Map<string, Entry> | undefined;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  async definitions(): Promise<SecretDefinition[]> {
    const entries = await this.#load();
    return [...entries].map(([name, { definition }]) => parseDefinition(name, definition));
  }

  value(name: string): string | undefined {
    return this.#entries?.get(name)?.value;
  }

  set(name: string, entry: Entry): Promise<void> {
    return this.#change((entries) => entries.set(name, entry));
  }

  async remove(name: string): Promise<boolean> {
    let was = false;
    await this.#change((entries) => {
      was = entries.delete(name);
    });
    return was;
  }

  async #load(): Promise<Map<string, Entry>> {
    if (this.#entries) return this.#entries;
    let text = "{}";
    try {
      text = await readFile(this.#path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw this.#broken("read");
    }
    try {
      this.#entries = new Map(Object.entries(JSON.parse(text) as Record<string, Entry>));
    } catch {
      throw this.#broken("understood");
    }
    return this.#entries;
  }

  #change(change: (entries: Map<string, Entry>) => void): Promise<void> {
    const writing = this.#writing.then(async () => {
      const entries = new Map(await this.#load());
      change(entries);
      await this.#write(JSON.stringify(Object.fromEntries(entries)));
      this.#entries = entries;
    });
    this.#writing = writing.catch(() => {});
    return writing;
  }

  async #write(text: string): Promise<void> {
    const temporary = `${this.#path}.${randomBytes(6).toString("hex")}`;
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.#path);
    } catch {
      await rm(temporary, { force: true });
      throw this.#broken("written");
    }
  }

  /** Without a cause: that could hold what is in the file. */
  #broken(what: string): CaissonError {
    return new CaissonError("STORAGE_FAILED", `the file of secrets in the data directory cannot be ${what}`);
  }
}
