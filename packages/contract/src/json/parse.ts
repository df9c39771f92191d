import { isUtf8 } from "node:buffer";
import type { JsonValue } from "@bufbuild/protobuf";
import { CaissonError } from "../errors.ts";
import { rules } from "../rules.ts";

/** Parses a document after checking that it is UTF-8 and not nested beyond `sizes.json_depth`. */
export function parseJson(bytes: Uint8Array): JsonValue {
  if (!isUtf8(bytes)) throw new CaissonError("INVALID_INPUT", "the body is not valid UTF-8");
  if (depthOf(bytes) > rules.sizes.json_depth) {
    throw new CaissonError(
      "INVALID_INPUT",
      `the JSON is nested deeper than ${rules.sizes.json_depth} levels`,
    );
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // The parser's own words quote the input, which may hold a secret.
    throw new CaissonError("INVALID_INPUT", "the body is not valid JSON");
  }
}

const quote = 0x22;
const backslash = 0x5c;

/** The deepest nesting of brackets outside strings; needs neither memory nor recursion. */
function depthOf(bytes: Uint8Array): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (inString) {
      if (byte === backslash) at++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return deepest;
}
