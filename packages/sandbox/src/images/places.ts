import { chown, mkdir, mkdtemp, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Whose the files of images are under a daemon of root's: nobody's, next to the uids of sandboxes. */
export const imageUid = 0x6bff_ffff;

/** Where images lie below the data directory. */
export class ImagePlaces {
  readonly #home: string;

  constructor(home: string) {
    this.#home = join(home, "images");
  }

  get layers(): string {
    return join(this.#home, "layers");
  }

  get roots(): string {
    return join(this.#home, "roots");
  }

  get unfinished(): string {
    return join(this.#home, "unfinished");
  }

  layer(digest: string): string {
    return join(this.layers, digest);
  }

  root(id: string): string {
    return join(this.roots, id);
  }

  async prepare(): Promise<void> {
    for (const dir of [this.layers, this.roots, this.unfinished])
      await mkdir(dir, { recursive: true, mode: 0o700 });
  }

  /** A directory for something that is not complete yet; the helper's to write. */
  async begin(): Promise<string> {
    const dir = await mkdtemp(join(this.unfinished, "part-"));
    if (isRoot()) await chown(dir, imageUid, imageUid);
    return dir;
  }

  async list(dir: string): Promise<string[]> {
    return readdir(dir).catch(() => []);
  }
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}
