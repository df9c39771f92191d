// Runs `caisson-guest image`, which unpacks what strangers have packed: without privileges, and able to write nowhere but
// where its result goes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CaissonError, isErrorCode } from "@caisson/contract";
import { ImageAnswerSchema, type ImageDone, ImageJobSchema } from "@caisson/contract/keeper";

const maxAnswer = 1 << 20;

/** Runs a job; `archive` follows it on its input. */
export async function runImageJob(
  guest: string,
  job: MessageInitShape<typeof ImageJobSchema>,
  archive: AsyncIterable<Buffer> | undefined,
): Promise<ImageDone> {
  const child = spawn(guest, ["image"], { stdio: ["pipe", "pipe", "ignore"], env: {}, cwd: "/" });
  const failed = new Promise<never>((_, reject) => {
    child.once("error", (cause) =>
      reject(new CaissonError("INTERNAL", "the helper for images did not start", { cause })),
    );
  });
  failed.catch(() => {});
  // It may end before it has read everything: its answer says why.
  child.stdin.on("error", () => {});
  try {
    const answer = readAnswer(child.stdout);
    answer.catch(() => {});
    const feeding = feed(child.stdin, job, archive);
    // What is wrong with the archive itself is told before what the helper made of it.
    const [fed, answered] = await Promise.race([Promise.allSettled([feeding, answer]), failed]);
    if (fed.status === "rejected") throw fed.reason;
    if (answered.status === "rejected") throw answered.reason;
    return answered.value;
  } finally {
    child.kill("SIGKILL");
  }
}

async function feed(
  input: NodeJS.WritableStream & { destroyed?: boolean },
  job: MessageInitShape<typeof ImageJobSchema>,
  archive: AsyncIterable<Buffer> | undefined,
): Promise<void> {
  const bytes = toBinary(ImageJobSchema, create(ImageJobSchema, job));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  input.write(Buffer.concat([length, bytes]));
  // One that ended early tells why in its answer; that it cannot be written to any more is no news.
  const closed = once(input, "close").catch(() => {});
  try {
    for await (const piece of archive ?? []) {
      if (input.destroyed) return;
      if (!input.write(piece)) await Promise.race([once(input, "drain").catch(() => {}), closed]);
    }
  } finally {
    input.end();
  }
}

async function readAnswer(output: AsyncIterable<Buffer>): Promise<ImageDone> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of output) {
    size += piece.length;
    if (size > maxAnswer) throw new CaissonError("INTERNAL", "the helper for images answered too much");
    pieces.push(piece);
  }
  const all = Buffer.concat(pieces);
  if (all.length < 4 || all.length !== 4 + all.readUInt32LE(0))
    throw new CaissonError("INTERNAL", "the helper for images ended before its answer");
  const { answer } = fromBinary(ImageAnswerSchema, all.subarray(4));
  if (answer.case === "done") return answer.value;
  const { code = "", message = "" } = answer.case === "failure" ? answer.value : {};
  throw new CaissonError(isErrorCode(code) ? code : "INTERNAL", message);
}
