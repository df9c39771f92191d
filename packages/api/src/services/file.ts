import {
  CaissonError,
  type CallContext,
  FileService,
  rules,
  type ServedService,
  serve,
  type UploadArchiveRequest,
  type WriteFileRequest,
} from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkMode, checkSandboxId, invalid } from "./check.ts";
import { listing, readContent } from "./file-streams.ts";

const transferLimit = rules.sizes.file_transfer_bytes;

export function fileService(engine: Engine): ServedService {
  const { files } = engine;
  return serve(FileService, {
    async statFile(request, call) {
      return {
        info: await files.stat(checkSandboxId(request.sandboxId), request.path, request.follow, call),
      };
    },
    readFile: (request, call) => readContent(files, request, call),
    async writeFile(requests, call) {
      const { first, content } = await openUpload(requests, transferLimit);
      const { path, mode, parents, ifMatch } = first;
      const options = { path, mode: checkMode(mode), parents, ifMatch };
      return { info: await files.write(checkSandboxId(first.sandboxId), options, content, call) };
    },
    async *listFiles(request, call) {
      const batches = files.list(checkSandboxId(request.sandboxId), request.path, request.recursive, call);
      yield* listing(batches);
    },
    async makeDirectory(request, call) {
      const options = { parents: request.parents, mode: checkMode(request.mode) };
      return { info: await files.mkdir(checkSandboxId(request.sandboxId), request.path, options, call) };
    },
    async moveFile(request, call) {
      const { from, to, overwrite } = request;
      return { info: await files.move(checkSandboxId(request.sandboxId), from, to, overwrite, call) };
    },
    async removeFile(request, call) {
      await files.remove(checkSandboxId(request.sandboxId), request.path, request.recursive, call);
      return {};
    },
    async *watchFiles(request, call) {
      const events = files.watch(checkSandboxId(request.sandboxId), request.path, request.recursive, call);
      for await (const event of events) yield { event };
    },
    async uploadArchive(requests, call: CallContext) {
      const { first, content } = await openUpload(requests, Number.POSITIVE_INFINITY);
      return await files.unpack(checkSandboxId(first.sandboxId), first.path, content, call);
    },
    async *downloadArchive(request, call) {
      const content = await files.pack(checkSandboxId(request.sandboxId), request.path, call);
      for await (const data of content) yield { data };
    },
  });
}

/** Splits an upload into its first message and the bytes of all of them, counted as they come. */
async function openUpload<T extends WriteFileRequest | UploadArchiveRequest>(
  requests: AsyncIterable<T>,
  limit: number,
): Promise<{ first: T; content: AsyncIterable<Uint8Array> }> {
  const iterator = requests[Symbol.asyncIterator]();
  const opening = await iterator.next();
  if (opening.done) throw invalid("the first message is missing; it says where to write");
  const first = opening.value;
  return { first, content: uploaded(first, iterator, limit) };
}

async function* uploaded<T extends WriteFileRequest | UploadArchiveRequest>(
  first: T,
  iterator: AsyncIterator<T>,
  limit: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for (let message = first; ; ) {
    bytes += message.data.length;
    if (bytes > limit) throw new CaissonError("TOO_LARGE", `a file may have at most ${limit} bytes per call`);
    if (message.data.length > 0) yield message.data;
    const next = await iterator.next();
    if (next.done) return;
    message = next.value;
    const { sandboxId, path } = message;
    if ((sandboxId !== "" && sandboxId !== first.sandboxId) || (path !== "" && path !== first.path)) {
      throw invalid("a later message names another file than the first");
    }
  }
}
