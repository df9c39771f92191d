import { CaissonError, type Exit, type ProcessEvent, rules } from "@caisson/contract";

/** A part of a batch: what was printed since the part before, and at the end the exit. */
export interface OutputPart {
  stdout: { data: Uint8Array };
  stderr: { data: Uint8Array };
  exit?: Exit;
}

/** Parts are cut here, so that no message comes near its limit and memory stays small. */
const partBytes = 1024 * 1024;

/**
 * Gathers a process's events into as few parts as possible: a small result is exactly one. Beyond
 * `sizes.exec_output_bytes` output is dropped and the exit says so.
 */
export async function* collectOutput(events: AsyncIterable<ProcessEvent>): AsyncGenerator<OutputPart> {
  let pending = new Pending();
  let taken = 0;
  let dropped = false;
  for await (const { event } of events) {
    if (event.case === "gap") dropped = true;
    else if (event.case === "stdout" || event.case === "stderr") {
      const room = rules.sizes.exec_output_bytes - taken;
      const { data } = event.value;
      if (data.length > room) dropped = true;
      const kept = data.length > room ? data.subarray(0, room) : data;
      taken += kept.length;
      pending.add(event.case, kept);
      if (pending.bytes >= partBytes) {
        yield pending.part();
        pending = new Pending();
      }
    } else if (event.case === "exit") {
      const exit = dropped ? { ...event.value, truncated: true } : event.value;
      yield { ...pending.part(), exit };
      return;
    }
  }
  throw new CaissonError("UNAVAILABLE", "the output broke off before the command's end");
}

class Pending {
  bytes = 0;
  readonly #pieces = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };

  add(stream: "stdout" | "stderr", data: Uint8Array): void {
    if (data.length === 0) return;
    this.bytes += data.length;
    this.#pieces[stream].push(data);
  }

  part(): OutputPart {
    return { stdout: { data: joined(this.#pieces.stdout) }, stderr: { data: joined(this.#pieces.stderr) } };
  }
}

const none = new Uint8Array(0);

function joined(pieces: Uint8Array[]): Uint8Array {
  if (pieces.length === 0) return none;
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}
