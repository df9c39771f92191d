import { constants } from "node:fs";
import { open } from "node:fs/promises";

const mostBytes = 1 << 20;

/** A configuration file's text; undefined if there is none, or it is none that a tool would read. */
export async function readText(
  path: string,
  options: { followLinks?: boolean } = {},
): Promise<string | undefined> {
  // A project is anybody's: neither waits for a FIFO nor follows a link of it.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  const file = await open(path, options.followLinks === false ? flags | constants.O_NOFOLLOW : flags).catch(
    () => undefined,
  );
  if (!file) return undefined;
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.size > mostBytes) return undefined;
    const buffer = Buffer.alloc(mostBytes);
    let length = 0;
    for (let read = 1; read > 0 && length < mostBytes; length += read)
      ({ bytesRead: read } = await file.read(buffer, length, mostBytes - length, length));
    return buffer.toString("utf8", 0, length);
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}

/** A file of the project, which is read but not trusted. */
export function readProjectText(path: string): Promise<string | undefined> {
  return readText(path, { followLinks: false });
}

/** `key = value` lines with `[sections]`, as many tools write them; later ones come later. */
export function* iniEntries(text: string): Generator<{ section: string; key: string; value: string }> {
  let section = "";
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    const heading = /^\[([^\]]*)\]$/.exec(line);
    if (heading) {
      section = heading[1]!.trim();
      continue;
    }
    const equals = line.indexOf("=");
    if (equals > 0)
      yield { section, key: line.slice(0, equals).trim(), value: line.slice(equals + 1).trim() };
  }
}
