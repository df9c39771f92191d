import {
  CaissonError,
  type CallContext,
  type FileInfo,
  type ReadFileRequest,
  rules,
} from "@caisson/contract";
import type { EngineFiles } from "@caisson/sandbox";
import { checkPosition, checkSandboxId } from "./check.ts";

/** The first message has the description and, when it is there at once, the first bytes. */
export async function* readContent(
  files: EngineFiles,
  request: ReadFileRequest,
  call: CallContext,
): AsyncGenerator<{ info?: FileInfo; data?: Uint8Array }> {
  checkPosition(request.offset, "offset");
  const limit = BigInt(rules.sizes.file_transfer_bytes);
  if (request.length > limit) throw tooLarge();
  const range = { offset: request.offset, length: request.length };
  const { info, content } = await files.read(checkSandboxId(request.sandboxId), request.path, range, call);
  const iterator = content[Symbol.asyncIterator]();
  try {
    if (request.length === 0n && info.size > request.offset + limit) throw tooLarge();
    const first = await iterator.next();
    yield first.done ? { info } : { info, data: first.value };
    // A file can grow while it is read.
    let bytes = BigInt(first.done ? 0 : first.value.length);
    for (let next = first; !next.done; ) {
      next = await iterator.next();
      if (next.done) return;
      bytes += BigInt(next.value.length);
      if (bytes > limit) throw tooLarge();
      yield { data: next.value };
    }
  } finally {
    await iterator.return?.();
  }
}

function tooLarge(): CaissonError {
  return new CaissonError(
    "TOO_LARGE",
    `a file is read in pieces of at most ${rules.sizes.file_transfer_bytes} bytes; use offset and length`,
  );
}

/** What an entry takes beside its names, roughly. */
const entryBytes = 64;
/** Keeps every message far below its limit, whatever the size of a batch. */
const messageBytes = 1024 * 1024;

/** A listing up to `sizes.listing_bytes`; the message that reaches the limit says so. */
export async function* listing(
  batches: AsyncIterable<FileInfo[]>,
): AsyncGenerator<{ files: FileInfo[]; truncated: boolean }> {
  let total = 0;
  let pending: FileInfo[] = [];
  let pendingBytes = 0;
  for await (const batch of batches) {
    for (const file of batch) {
      const bytes = entryBytes + file.path.length + file.target.length;
      if (total + bytes > rules.sizes.listing_bytes) {
        yield { files: pending, truncated: true };
        return;
      }
      total += bytes;
      pendingBytes += bytes;
      pending.push(file);
      if (pendingBytes >= messageBytes) {
        yield { files: pending, truncated: false };
        pending = [];
        pendingBytes = 0;
      }
    }
  }
  if (pending.length > 0) yield { files: pending, truncated: false };
}
