import type { Image as Message } from "@caisson/contract";
import { toDate, toNumber } from "./numbers.ts";

/** An image that was brought in. */
export interface Image {
  name: string;
  /** `sha256:` and 64 digits. */
  id: string;
  layers: string[];
  /** Bytes of all its files, and of those that no other image has. */
  sizeBytes: number;
  unsharedBytes: number;
  importedAt: Date | undefined;
  architecture: string;
  env: Record<string, string>;
  workdir: string;
  /** What it would run by itself elsewhere. */
  entrypoint: string[];
  command: string[];
  user: string;
  /** Living sandboxes that were made from it. */
  inUse: number;
}

export function imageFrom(message: Message): Image {
  const { $typeName: _type, $unknown: _unknown, importedAt, sizeBytes, unsharedBytes, ...rest } = message;
  return {
    ...rest,
    sizeBytes: toNumber(sizeBytes),
    unsharedBytes: toNumber(unsharedBytes),
    importedAt: toDate(importedAt),
  };
}
