import { CaissonError } from "@caisson/contract";
import type { Proc } from "./proc.ts";

/**
 * Writes standard input; resolves with the bytes taken in all. Bytes that were taken already are
 * skipped, so a call may be repeated. Calls are taken one after the other.
 */
export function writeStdin(
  proc: Proc,
  input: { offset: bigint; data: Uint8Array; end: boolean },
): Promise<bigint> {
  const written = proc.stdinChain.then(() => writeNow(proc, input));
  proc.stdinChain = written.catch(() => {});
  return written;
}

async function writeNow(
  proc: Proc,
  { offset, data, end }: { offset: bigint; data: Uint8Array; end: boolean },
): Promise<bigint> {
  const skip = proc.stdinOffset - Number(offset);
  const fresh = skip > 0 ? data.subarray(skip) : data;
  const repeated = fresh.length === 0 && skip >= data.length && (skip > 0 || end);
  if (!proc.stdinOpen) {
    // A repeated call whose bytes and end were taken has succeeded before.
    if (repeated && proc.record.keepStdin && !proc.record.exit) return BigInt(proc.stdinOffset);
    throw proc.record.exit
      ? new CaissonError("PROCESS_ENDED", "the process has exited")
      : new CaissonError("STDIN_CLOSED", "the process's standard input is closed");
  }
  if (skip < 0) {
    throw new CaissonError("INVALID_INPUT", `offset is beyond the ${proc.stdinOffset} bytes taken so far`);
  }
  const guest = proc.box.livingGuest();
  if (fresh.length > 0) {
    await guest.writeStdin(proc.record.stream, fresh);
    proc.stdinOffset += fresh.length;
  }
  if (end) {
    guest.endStdin(proc.record.stream);
    proc.stdinOpen = false;
  }
  return BigInt(proc.stdinOffset);
}
