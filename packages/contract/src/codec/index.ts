// Messages to bytes and back, compiled from the descriptors: what protobuf-es does by reflection, many
// times as fast. Node only.
export { decodeMessage, shareDecoded } from "./decode.ts";
export { encodeMessage, encodeParts, keepEncoding } from "./encode.ts";
export type { Writer } from "./writer.ts";
