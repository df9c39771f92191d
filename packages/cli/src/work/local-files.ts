import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UsageError } from "../command/usage-error.ts";

/** Where a file lands: inside a directory that is there, else under the name that was given. */
export async function fileTarget(path: string, name: string, word: string): Promise<string> {
  if (await isDirectory(path)) return join(path, name);
  if (word.endsWith("/")) throw new UsageError(`there is no directory ${word}`);
  return path;
}

/** Where a directory's content lands, which is made if need be. */
export async function directoryTarget(path: string, name: string): Promise<string> {
  const target = (await isDirectory(path)) ? join(path, name) : path;
  await mkdir(target, { recursive: true });
  return target;
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/** Writes a file whole or not at all; returns its size. */
export async function writeLocal(
  path: string,
  mode: number,
  content: AsyncIterable<Uint8Array>,
): Promise<number> {
  const scratch = join(dirname(path), `.caisson-${crypto.randomUUID()}`);
  const file = await open(scratch, "wx", 0o600).catch((thrown) => {
    throw new UsageError(`cannot write ${path}: ${(thrown as NodeJS.ErrnoException).code}`);
  });
  try {
    let bytes = 0;
    try {
      for await (const chunk of content) {
        await file.writeFile(chunk);
        bytes += chunk.length;
      }
      await file.chmod(mode & 0o777);
    } finally {
      await file.close();
    }
    await rename(scratch, path);
    return bytes;
  } catch (thrown) {
    await rm(scratch, { force: true });
    throw thrown;
  }
}
