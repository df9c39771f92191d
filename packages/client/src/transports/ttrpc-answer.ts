import type { DescMethod, MessageShape } from "@bufbuild/protobuf";
import { EnforcementSchema } from "@caisson/contract";
import { decodeMessage, shareDecoded } from "@caisson/contract/codec";
import { CaissonError } from "@caisson/contract/errors";

// Each exit brings its sandbox's report, which is the same every time.
shareDecoded(EnforcementSchema);

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
