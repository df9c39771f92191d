import type { Exit, Result } from "@caisson/client";
import { textOrBytes, toJson } from "../text/json.ts";

/** A command's result as the contract's JSON has it. */
export function resultJson({ sandboxId, processId, stdout, stderr, ...exit }: Result): object {
  return {
    sandbox_id: sandboxId,
    process_id: processId,
    ...textOrBytes("stdout", stdout.bytes),
    ...textOrBytes("stderr", stderr.bytes),
    exit: toJson(exit satisfies Exit),
  };
}
