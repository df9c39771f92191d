/** What is kept of an image, as JSON. Its key is its name. */
export interface ImageRecord {
  name: string;
  /** 64 hexadecimal digits: the SHA-256 of its configuration. */
  id: string;
  /** The same of its layers' uncompressed content, the lowest first, and how much each unpacks to. */
  layers: LayerRecord[];
  importedAt: number;
  /** Who brought it in. */
  actor?: string;
  config: ImageConfig;
}

export interface LayerRecord {
  digest: string;
  bytes: number;
}

/** What an image says about itself, as far as it counts. */
export interface ImageConfig {
  architecture: string;
  env: Record<string, string>;
  workdir: string;
  user: string;
  entrypoint: string[];
  command: string[];
}

export const imageKind = "image";
