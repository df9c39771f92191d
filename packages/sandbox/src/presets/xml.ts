// Just enough of XML for what Maven's settings say: elements without nested ones of the same name. Nothing is ever
// expanded or fetched.
const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

export function withoutComments(text: string): string {
  return text.replace(/<!--[\s\S]*?(-->|$)/g, "");
}

/** The contents of every element of this name. */
export function* elements(text: string, name: string): Generator<string> {
  const [open, close] = [`<${name}`, `</${name}>`];
  for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1)) {
    if (!/[\s>]/.test(text[at + open.length] ?? "")) continue;
    const start = text.indexOf(">", at);
    const end = text.indexOf(close, at);
    if (start < 0 || end < 0) return;
    if (end < start) continue;
    yield text.slice(start + 1, end);
  }
}

/** The text of the first element of this name, or nothing. */
export function textOf(text: string, name: string): string {
  const [body = ""] = elements(text, name);
  return body.trim().replace(/&(\w+);/g, (whole, entity: string) => entities[entity] ?? whole);
}
