import { UsageError } from "../command/usage-error.ts";
import type { Io } from "../io/io.ts";

const maxBytes = 1024 * 1024;

/** A small text file of the caller's. */
export async function readText(io: Io, path: string): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of io.readFile(path)) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new UsageError(`${path} is larger than 1 MiB`);
      text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    const words =
      thrown instanceof TypeError ? "it is not UTF-8" : thrown instanceof Error ? thrown.message : "";
    throw new UsageError(`cannot read ${path}: ${words}`);
  }
}
