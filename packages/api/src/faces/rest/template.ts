/** One segment of a path: literal text, or a field whose value it is. */
type Segment = { literal: string } | { field: string };

/** A path of google.api.http, such as `/v1/sandboxes/{sandbox_id}:exec`. */
export interface Template {
  readonly segments: readonly Segment[];
  /** What follows the last colon, or empty. */
  readonly verb: string;
}

/** Only the forms that the contract uses: literals, single-segment fields and a verb. */
export function parseTemplate(path: string): Template {
  const match = /^((?:\/(?:[a-z0-9_]+|\{[a-z0-9_]+\}))+)(?::([a-z]+))?$/.exec(path);
  if (match === null) throw new Error(`unsupported path template ${path}`);
  const segments = match[1]!
    .slice(1)
    .split("/")
    .map((part) => (part.startsWith("{") ? { field: part.slice(1, -1) } : { literal: part }));
  return { segments, verb: match[2] ?? "" };
}

/** The values of the template's fields, or undefined where the path is another. */
export function matchTemplate(
  template: Template,
  path: readonly string[],
): Record<string, string> | undefined {
  const { segments, verb } = template;
  if (path.length !== segments.length) return undefined;
  const values: Record<string, string> = {};
  for (let index = 0; index < segments.length; index++) {
    const segment = segments[index]!;
    let part = path[index]!;
    if (verb !== "" && index === segments.length - 1) {
      if (!part.endsWith(`:${verb}`)) return undefined;
      part = part.slice(0, -verb.length - 1);
    }
    if ("literal" in segment) {
      if (part !== segment.literal) return undefined;
    } else {
      const value = decodeSegment(part);
      if (value === undefined) return undefined;
      values[segment.field] = value;
    }
  }
  return values;
}

/** Decodes a segment once. What could be mistaken for more than one segment, or for none, names nothing. */
function decodeSegment(part: string): string | undefined {
  let value: string;
  try {
    value = decodeURIComponent(part);
  } catch {
    return undefined;
  }
  if (value === "" || value === "." || value === ".." || /[/\\\u0000-\u001f\u007f]/.test(value))
    return undefined;
  return value;
}
