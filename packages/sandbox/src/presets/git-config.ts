/** An entry of git's configuration; section and key in lower case. */
export interface GitEntry {
  section: string;
  subsection: string;
  key: string;
  value: string;
}

/** Reads git's own format: `[section "subsection"]`, quoted values, continued lines, comments. */
export function* gitEntries(text: string): Generator<GitEntry> {
  let section = "";
  let subsection = "";
  for (const raw of text.replace(/\\\r?\n/g, "").split(/\r?\n/)) {
    let line = raw.trim();
    const heading = /^\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)$/.exec(line);
    if (heading) {
      section = heading[1]!.toLowerCase();
      subsection = (heading[2] ?? "").replace(/\\(.)/g, "$1");
      line = heading[3]!;
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)$/.exec(line);
    if (entry) yield { section, subsection, key: entry[1]!.toLowerCase(), value: unquoted(entry[2]!) };
  }
}

function unquoted(text: string): string {
  let value = "";
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "\\") value += text[++at] ?? "";
    else if (character === '"') quoted = !quoted;
    else if (!quoted && (character === "#" || character === ";")) break;
    else value += character;
  }
  return value.trim();
}
