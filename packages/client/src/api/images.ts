import { CaissonError } from "@caisson/contract/errors";
import type { Caller } from "../call/caller.ts";
import type { CallOptions } from "../call/options.ts";
import { type Image, imageFrom } from "../values/image.ts";
import { toNumber } from "../values/numbers.ts";

export interface ImportOptions extends CallOptions {
  /** Default: the name that the archive gives. */
  name?: string | undefined;
  /** Told how far it is. */
  onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface ImportProgress {
  /** What is being done now. */
  step: string;
  layersDone: number;
  layers: number;
  /** Bytes of this step so far. */
  bytes: number;
}

/** What sandboxes can be made from, beside the host: `spec.image` names one. */
export class Images {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async list(options: CallOptions = {}): Promise<Image[]> {
    const { images } = await this.#caller.unary((c) => c.ImageService.method.listImages, {}, options);
    return images.map(imageFrom);
  }

  /** Brings in an archive or an OCI layout by its path on the daemon's host, or an image of the Docker engine there. */
  async import(source: { path: string } | { docker: string }, options: ImportOptions = {}): Promise<Image> {
    const chosen =
      "path" in source
        ? { case: "path" as const, value: source.path }
        : { case: "docker" as const, value: source.docker };
    const request = { source: chosen, name: options.name ?? "" };
    const events = this.#caller.stream((c) => c.ImageService.method.importImage, request, options);
    for await (const { event } of events) {
      if (event.case === "image") return imageFrom(event.value);
      if (event.case === "progress") {
        const { step, layersDone, layers, bytes } = event.value;
        options.onProgress?.({ step, layersDone, layers, bytes: toNumber(bytes) });
      }
    }
    throw new CaissonError("INTERNAL", "the server ended the call without an answer");
  }

  /** Forgets a name, or all names of an id; returns the bytes that were freed. */
  async remove(name: string, options: CallOptions = {}): Promise<number> {
    const { bytes } = await this.#caller.unary((c) => c.ImageService.method.removeImage, { name }, options);
    return toNumber(bytes);
  }

  /** Frees what no image and no living sandbox uses. */
  async collect(options: CallOptions = {}): Promise<{ bytes: number; layers: number }> {
    const answer = await this.#caller.unary((c) => c.ImageService.method.collectImages, {}, options);
    return { bytes: toNumber(answer.bytes), layers: answer.layers };
  }
}
