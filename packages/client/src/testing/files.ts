import { CaissonError, FileService, FileType, type ServedService, serve } from "@caisson/contract";

interface Entry {
  type: FileType;
  data: Uint8Array;
  mode: number;
  version: number;
}

/** A sandbox's files in memory, by absolute path. */
export class FakeFiles {
  readonly entries = new Map<string, Entry>([
    ["/", { type: FileType.DIRECTORY, data: new Uint8Array(), mode: 0o755, version: 1 }],
  ]);

  get(path: string): Entry {
    const entry = this.entries.get(path);
    if (!entry) throw new CaissonError("PATH_NOT_FOUND", `there is no ${path}`);
    return entry;
  }

  put(path: string, data: Uint8Array, mode: number, type: FileType = FileType.REGULAR): void {
    const before = this.entries.get(path);
    this.entries.set(path, {
      type,
      data,
      mode: mode || before?.mode || 0o644,
      version: (before?.version ?? 0) + 1,
    });
  }

  info(path: string, name = path) {
    const { type, data, mode, version } = this.get(path);
    return {
      path: new TextEncoder().encode(name),
      type,
      size: BigInt(data.length),
      mode,
      etag: `v${version}`,
    };
  }

  below(path: string): string[] {
    const prefix = path === "/" ? "/" : `${path}/`;
    return [...this.entries.keys()].filter((name) => name !== path && name.startsWith(prefix));
  }
}

interface Owner {
  sandbox(id: string): { id: string };
  files: Map<string, FakeFiles>;
}

/** The file calls as far as tests need them; archives are kept as the bytes they came in. */
export function fileService(owner: Owner): ServedService {
  const of = (id: string) => owner.files.get(owner.sandbox(id).id)!;
  return serve(FileService, {
    statFile: async ({ sandboxId, path }) => ({ info: of(sandboxId).info(path) }),
    async *readFile({ sandboxId, path, offset, length }) {
      const files = of(sandboxId);
      const { data } = files.get(path);
      yield { info: files.info(path), data: new Uint8Array() };
      yield { data: data.slice(Number(offset), length ? Number(offset + length) : undefined) };
    },
    writeFile: async (requests) => {
      const { first, data } = await gather(requests);
      const files = of(first.sandboxId);
      const there = files.entries.get(first.path);
      if (first.ifMatch === "-" && there) throw new CaissonError("ETAG_MISMATCH", "it is there already");
      files.put(first.path, data, first.mode);
      return { info: files.info(first.path) };
    },
    async *listFiles({ sandboxId, path, recursive }) {
      const files = of(sandboxId);
      files.get(path);
      const start = path === "/" ? 1 : path.length + 1;
      const names = files.below(path).filter((name) => recursive || !name.slice(start).includes("/"));
      yield { files: names.map((name) => files.info(name, name.slice(start))) };
    },
    makeDirectory: async ({ sandboxId, path, mode, parents }) => {
      const files = of(sandboxId);
      if (!parents && files.entries.has(path)) throw new CaissonError("PATH_EXISTS", `${path} is there`);
      files.put(path, new Uint8Array(), mode || 0o755, FileType.DIRECTORY);
      return { info: files.info(path) };
    },
    moveFile: async ({ sandboxId, from, to, overwrite }) => {
      const files = of(sandboxId);
      if (files.entries.has(to) && !overwrite) throw new CaissonError("PATH_EXISTS", `${to} is there`);
      files.entries.set(to, files.get(from));
      files.entries.delete(from);
      return { info: files.info(to) };
    },
    removeFile: async ({ sandboxId, path, recursive }) => {
      const files = of(sandboxId);
      files.get(path);
      const below = files.below(path);
      if (below.length > 0 && !recursive)
        throw new CaissonError("DIRECTORY_NOT_EMPTY", `${path} is not empty`);
      for (const name of [path, ...below]) files.entries.delete(name);
      return {};
    },
    async *watchFiles({ sandboxId }) {
      of(sandboxId);
      yield { event: { seq: 1n, event: { case: "ready", value: {} } } };
      yield { event: { seq: 2n, event: { case: "created", value: { path: Buffer.from("new"), type: 1 } } } };
    },
    uploadArchive: async (requests) => {
      const { first, data } = await gather(requests);
      of(first.sandboxId).put(`${first.path}#tar`, data, 0);
      return { files: 1n, bytes: BigInt(data.length) };
    },
    async *downloadArchive({ sandboxId, path }) {
      yield { data: of(sandboxId).get(`${path}#tar`).data };
    },
  });
}

async function gather<T extends { data: Uint8Array }>(requests: AsyncIterable<T>) {
  const all: T[] = [];
  for await (const request of requests) all.push(request);
  return { first: all[0]!, data: new Uint8Array(Buffer.concat(all.map(({ data }) => data))) };
}
