// Messages as the JSON of the REST face. Node only.
export { decodeJson } from "./decode.ts";
export { encodeJson } from "./encode.ts";
export { isWellKnown, type JsonField, type JsonShape, shapeOf } from "./names.ts";
export { parseJson } from "./parse.ts";
