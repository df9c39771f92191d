import { rules } from "@caisson/contract/rules";
import { toBytes } from "../values/output.ts";

/** Small enough that the next hop begins before the last byte has come. */
const pieceBytes = rules.sizes.message_bytes / 16;

export type Content = string | Uint8Array | AsyncIterable<Uint8Array>;

/** The messages of an upload: the first says what it is about, all of them have data. */
export async function* withData<T extends object>(first: T, content: Content) {
  let head: T | undefined = first;
  for await (const chunk of typeof content === "string" || content instanceof Uint8Array
    ? [toBytes(content)]
    : content) {
    for (let at = 0; at < chunk.length || at === 0; at += pieceBytes) {
      yield { ...head, data: chunk.subarray(at, at + pieceBytes) as Uint8Array<ArrayBuffer> };
      head = undefined;
      if (chunk.length === 0) break;
    }
  }
  if (head) yield { ...head, data: new Uint8Array(0) };
}
