export type { ImageSource } from "./import.ts";
export type { ImageConfig, ImageRecord } from "./record.ts";
export { ImageStore } from "./store.ts";
