import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  CaissonError,
  type CallContext,
  FileChangeSchema,
  type FileEvent,
  FileEventSchema,
  type FileInfo,
  FileInfoSchema,
  type FileType,
  resolvePath,
  rules,
} from "@caisson/contract";
import { type Change, Change_Kind, type FileEntry } from "@caisson/contract/link";
import type { GuestFiles } from "../link/guest.ts";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import type { EngineFiles } from "./engine.ts";
import { readyBox } from "./find.ts";

const maxArchiveBytes = 16n * 1024n * 1024n * 1024n;
const maxArchiveFiles = 1_000_000n;
/** Permission bits without set-uid and set-gid. */
const modeBits = 0o1777;

/** The file calls of the contract, on a living sandbox. */
export function engineFiles(context: EngineContext): EngineFiles {
  /** Resolves the paths and keeps the sandbox from being idle meanwhile. */
  async function on<T>(
    sandboxId: string,
    paths: readonly string[],
    action: (files: GuestFiles, absolute: string[], box: Box) => Promise<T>,
  ): Promise<T> {
    const box = await readyBox(context, sandboxId);
    const absolute = paths.map((path) => resolvePath(path, box.record.workdir));
    const done = box.use();
    try {
      return await action(box.livingGuest().files, absolute, box);
    } finally {
      done();
    }
  }

  const tell = (box: Box, call: CallContext, type: string, data: Record<string, unknown>) =>
    context.commit([{ type, actor: call.actor, sandboxId: box.id, data }]);

  return {
    stat: (sandboxId, path, follow, call) =>
      on(sandboxId, [path], async (files, [at]) => toInfo(await files.stat(at!, follow, call.signal), path)),

    read: (sandboxId, path, { offset, length }, call) =>
      on(sandboxId, [path], async (files, [at]) => {
        const { entry, content } = await files.read(at!, offset, length, call.signal);
        return { info: toInfo(entry, path), content };
      }),

    write: (sandboxId, options, content, call) =>
      on(sandboxId, [options.path], async (files, [at], box) => {
        checkMode(options.mode);
        const { parents, ifMatch, mode } = options;
        const maxBytes = BigInt(rules.sizes.file_transfer_bytes);
        const entry = await files.write(
          { path: at!, mode, parents, ifMatch, maxBytes },
          content,
          call.signal,
        );
        await tell(box, call, "file.written", { path: at, size: Number(entry.size) });
        return toInfo(entry, options.path);
      }),

    async *list(sandboxId, path, recursive, call) {
      const box = await readyBox(context, sandboxId);
      const at = resolvePath(path, box.record.workdir);
      const done = box.use();
      try {
        for await (const { entries } of box.livingGuest().files.list(at, recursive, call.signal)) {
          yield entries.map((entry) => toInfo(entry));
        }
      } finally {
        done();
      }
    },

    mkdir: (sandboxId, path, { parents, mode }, call) =>
      on(sandboxId, [path], async (files, [at], box) => {
        checkMode(mode);
        const entry = await files.mkdir(at!, parents, mode || 0o755, call.signal);
        await tell(box, call, "file.directory_made", { path: at });
        return toInfo(entry, path);
      }),

    move: (sandboxId, from, to, overwrite, call) =>
      on(sandboxId, [from, to], async (files, [source, target], box) => {
        const entry = await files.move(source!, target!, overwrite, call.signal);
        await tell(box, call, "file.moved", { from: source, to: target });
        return toInfo(entry, to);
      }),

    remove: (sandboxId, path, recursive, call) =>
      on(sandboxId, [path], async (files, [at], box) => {
        await files.remove(at!, recursive, call.signal);
        await tell(box, call, "file.removed", { path: at });
      }),

    async *watch(sandboxId, path, recursive, call) {
      const box = await readyBox(context, sandboxId);
      const at = resolvePath(path, box.record.workdir);
      let seq = 0n;
      for await (const change of box.livingGuest().files.watch(at, recursive, call.signal)) {
        yield toEvent(++seq, change);
      }
    },

    unpack: (sandboxId, path, content, call) =>
      on(sandboxId, [path], async (files, [at], box) => {
        const limits = { maxBytes: maxArchiveBytes, maxFiles: maxArchiveFiles };
        const done = await files.unpack(at!, limits, content, call.signal);
        await tell(box, call, "file.unpacked", {
          path: at,
          files: Number(done.files),
          bytes: Number(done.bytes),
        });
        return done;
      }),

    pack: (sandboxId, path, call) => on(sandboxId, [path], (files, [at]) => files.pack(at!, call.signal)),
  };
}

function checkMode(mode: number): void {
  if ((mode & ~modeBits) === 0) return;
  throw new CaissonError("INVALID_INPUT", "mode may hold permission bits only, without set-uid and set-gid");
}

/** `path` as the caller gave it, where there is one. */
function toInfo(entry: FileEntry, path?: string): FileInfo {
  return create(FileInfoSchema, {
    path: path === undefined ? entry.path : new TextEncoder().encode(path),
    type: entry.type as number as FileType,
    size: entry.size,
    mode: entry.mode,
    modifiedAt: timestampFromMs(Number(entry.mtimeNs / 1_000_000n)),
    target: entry.target,
    etag: entry.etag,
  });
}

const changeNames = {
  [Change_Kind.CREATED]: "created",
  [Change_Kind.MODIFIED]: "modified",
  [Change_Kind.REMOVED]: "removed",
  [Change_Kind.OVERFLOW]: "overflow",
} as const;

function toEvent(seq: bigint, change: Change | undefined): FileEvent {
  const name = change ? (changeNames[change.kind as keyof typeof changeNames] ?? "overflow") : "ready";
  const value = create(
    FileChangeSchema,
    change ? { path: change.path, type: change.type as number as FileType } : {},
  );
  return create(FileEventSchema, { seq, event: { case: name, value } as FileEvent["event"] });
}
