// Runs `caisson-guest workspace`, which reads layers and applies them: Node has no extended attributes, and meets
// files that it may not read.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CaissonError, isErrorCode } from "@caisson/contract";
import {
  type ApplyOutcome,
  type JobDone,
  type WorkspaceJobSchema as JobSchema,
  type LayerChange,
  WorkspaceJobSchema,
  WorkspaceMessageSchema,
} from "@caisson/contract/keeper";

export type JobInit = MessageInitShape<typeof JobSchema>;
export type JobItem =
  | { change: LayerChange }
  | { outcome: ApplyOutcome }
  | { data: Uint8Array }
  | { done: JobDone };

/** A message holds one change with the contents of at most two files. */
const maxMessage = 64 << 20;

/** Runs a job and yields what it finds; the last item is `done`. `input` follows the job. */
export async function* runJob(
  guest: string,
  job: JobInit,
  input?: AsyncIterable<Uint8Array>,
): AsyncGenerator<JobItem> {
  const child = spawn(guest, ["workspace"], { stdio: ["pipe", "pipe", "ignore"], env: {} });
  const failed = new Promise<never>((_, reject) => {
    child.once("error", (error) =>
      reject(new CaissonError("INTERNAL", "the workspace helper did not start", { cause: error })),
    );
  });
  let rejectFeeding: (error: unknown) => void = () => {};
  const feeding = new Promise<never>((_, reject) => {
    rejectFeeding = reject;
  });
  for (const promise of [failed, feeding]) promise.catch(() => {});
  try {
    const bytes = toBinary(WorkspaceJobSchema, create(WorkspaceJobSchema, job));
    child.stdin.on("error", () => {});
    const head = Buffer.concat([lengthOf(bytes), bytes]);
    if (input) feed(child.stdin, head, input).catch(rejectFeeding);
    else child.stdin.end(head);
    const messages = readMessages(child.stdout);
    while (true) {
      const next = await Promise.race([messages.next(), failed, feeding]);
      if (next.done) throw new CaissonError("INTERNAL", "the workspace helper ended before its answer");
      const { message } = fromBinary(WorkspaceMessageSchema, next.value);
      switch (message.case) {
        case "change":
          yield { change: message.value };
          break;
        case "outcome":
          yield { outcome: message.value };
          break;
        case "data":
          yield { data: message.value };
          break;
        case "done":
          yield { done: message.value };
          return;
        case "failure": {
          const { code, message: words } = message.value;
          throw new CaissonError(isErrorCode(code) ? code : "INTERNAL", words);
        }
      }
    }
  } finally {
    child.kill("SIGKILL");
  }
}

/** A source that fails ends the job without an end of its input: what came is not taken for the whole. */
async function feed(stdin: Writable, head: Buffer, input: AsyncIterable<Uint8Array>): Promise<void> {
  stdin.write(head);
  for await (const piece of input) {
    if (stdin.destroyed) return;
    if (!stdin.write(piece)) await once(stdin, "drain").catch(() => {});
  }
  stdin.end();
}

function lengthOf(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return length;
}

async function* readMessages(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pending: Buffer[] = [];
  let have = 0;
  let want = 4;
  for await (const piece of source) {
    pending.push(piece);
    have += piece.length;
    if (have < want) continue;
    let joined = pending.length === 1 ? pending[0]! : Buffer.concat(pending);
    while (joined.length >= 4) {
      const length = joined.readUInt32LE(0);
      if (length > maxMessage)
        throw new CaissonError("INTERNAL", "the workspace helper's answer is too large");
      want = 4 + length;
      if (joined.length < want) break;
      yield joined.subarray(4, want);
      joined = joined.subarray(want);
      want = 4;
    }
    pending = [joined];
    have = joined.length;
  }
}
