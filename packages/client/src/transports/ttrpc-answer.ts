import type { DescMethod, MessageShape } from "@bufbuild/protobuf";
import { decodeMessage } from "@caisson/contract/codec";
import { CaissonError } from "@caisson/contract/errors";

export function decodeAnswer<M extends DescMethod>(
  method: M,
  payload: Uint8Array,
): MessageShape<M["output"]> {
  try {
    return decodeMessage(method.output, payload) as MessageShape<M["output"]>;
  } catch (cause) {
    throw new CaissonError("INTERNAL", "the server's answer could not be read", { cause });
  }
}
