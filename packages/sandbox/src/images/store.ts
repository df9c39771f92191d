import { join } from "node:path";
import { CaissonError, type Caller, mustOwn } from "@caisson/contract";
import type { NewEvent, StateChange, Store } from "@caisson/store";
import type { ImageSource } from "./import.ts";
import { ImagePlaces } from "./places.ts";
import { type ImageRecord, imageKind, type LayerRecord } from "./record.ts";

export interface ImageStoreOptions {
  /** The data directory's real path. */
  home: string;
  guest: string;
  store: Store;
  commit(events: NewEvent[], changes: StateChange[]): Promise<unknown>;
  removeTree(path: string): Promise<number>;
  /** Where a Docker engine is asked; throws with a clear word. */
  engineSocket?(): string;
  /** Ids of images that living sandboxes were made from. */
  inUse(): Iterable<string>;
}

function noEngine(): never {
  throw new CaissonError("UNAVAILABLE", "there is no Docker engine to ask");
}

export type Progress = (step: string, layersDone: number, layers: number, bytes: number) => void;

/** The images of a data directory. One change at a time. */
export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #places: ImagePlaces;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#places = new ImagePlaces(options.home);
  }

  list(): ImageRecord[] {
    const records = [...this.#options.store.scan<ImageRecord>(imageKind)].map(([, record]) => record);
    return records.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** By name, with or without `:latest`, or by id or the beginning of one. */
  find(name: string): ImageRecord | undefined {
    const { store } = this.#options;
    const named =
      store.get<ImageRecord>(imageKind, name) ?? store.get<ImageRecord>(imageKind, `${name}:latest`);
    if (named) return named;
    const digits = /^(?:sha256:)?([0-9a-f]{12,64})$/.exec(name)?.[1];
    if (digits === undefined) return undefined;
    const found = this.list().filter(({ id }) => id.startsWith(digits));
    return found.every(({ id }) => id === found[0]!.id) ? found[0] : undefined;
  }

  get(name: string): ImageRecord {
    const found = this.find(name);
    if (found) return found;
    throw new CaissonError("IMAGE_NOT_FOUND", `there is no image ${JSON.stringify(name.slice(0, 255))}`);
  }

  /** Where its files are. */
  rootOf(record: ImageRecord): string {
    return this.#places.root(record.id);
  }

  /** A name that was somebody else's is taken over only by who sees everything. */
  import(source: ImageSource, name: string, call: Caller, progress: Progress): Promise<ImageRecord> {
    return this.#inTurn(async () => {
      const { importImage } = await import("./import.ts");
      const { guest, commit, engineSocket = noEngine } = this.#options;
      await this.#places.prepare();
      const layers = new Map(
        this.list().flatMap((record) => record.layers.map((layer) => [layer.digest, layer])),
      );
      const present = new Set(await this.#places.list(this.#places.layers));
      const known = (digest: string): LayerRecord | undefined =>
        present.has(digest) ? layers.get(digest) : undefined;
      try {
        const importing = { guest, places: this.#places, engineSocket, known, progress };
        const record = { ...(await importImage(importing, source, name)), actor: call.actor };
        const before = this.#options.store.get<ImageRecord>(imageKind, record.name);
        if (before) mustOwn(call, before.actor, `the image ${record.name}`);
        const data = { name: record.name, id: record.id, layers: record.layers.length };
        await commit(
          [{ type: "image.imported", actor: call.actor, data }],
          [{ put: imageKind, key: record.name, value: record }],
        );
        await this.#clearUnfinished();
        return record;
      } catch (error) {
        // What was unpacked for an image that is not recorded is nobody's.
        await this.#collect();
        throw error;
      }
    });
  }

  /** Forgets a name, or all of an id; resolves with the bytes that this freed. */
  remove(name: string, call: Caller): Promise<number> {
    return this.#inTurn(async () => {
      const { id, name: exact } = this.get(name);
      const byName = exact === name || exact === `${name}:latest`;
      const gone = this.list().filter((record) => (byName ? record.name === exact : record.id === id));
      for (const record of gone) mustOwn(call, record.actor, `the image ${record.name}`);
      await this.#options.commit(
        gone.map((each) => ({ type: "image.removed", actor: call.actor, data: { name: each.name, id } })),
        gone.map((each) => ({ remove: imageKind, key: each.name })),
      );
      return (await this.#collect()).bytes;
    });
  }

  /** Frees what no image and no living sandbox uses. */
  collect(): Promise<{ bytes: number; layers: number }> {
    return this.#inTurn(() => this.#collect());
  }

  async #collect(): Promise<{ bytes: number; layers: number }> {
    const { store } = this.#options;
    const records = [...store.scan<ImageRecord>(imageKind)].map(([, record]) => record);
    const roots = new Set([...records.map(({ id }) => id), ...this.#options.inUse()]);
    const layers = new Set(records.flatMap((record) => record.layers.map(({ digest }) => digest)));
    let bytes = await this.#clearUnfinished();
    for (const id of await this.#places.list(this.#places.roots))
      if (!roots.has(id)) bytes += await this.#options.removeTree(this.#places.root(id));
    let count = 0;
    for (const digest of await this.#places.list(this.#places.layers)) {
      if (layers.has(digest)) continue;
      bytes += await this.#options.removeTree(this.#places.layer(digest));
      count++;
    }
    return { bytes, layers: count };
  }

  async #clearUnfinished(): Promise<number> {
    let bytes = 0;
    for (const name of await this.#places.list(this.#places.unfinished))
      bytes += await this.#options.removeTree(join(this.#places.unfinished, name));
    return bytes;
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(act, act);
    this.#turn = turn.catch(() => {});
    return turn;
  }
}
