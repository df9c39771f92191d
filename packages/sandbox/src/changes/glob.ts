// Patterns for paths: `*` within a name, `**` across names, `?` one character; a directory means everything below it.

/** Does a path match one of the patterns? No pattern matches everything. */
export function matcher(patterns: readonly string[]): (path: string) => boolean {
  if (patterns.length === 0) return () => true;
  const expressions = patterns.map((pattern) =>
    toExpression(pattern.replace(/^\.\//, "").replace(/\/+$/, "")),
  );
  return (path) => expressions.some((expression) => expression.test(path));
}

function toExpression(pattern: string): RegExp {
  if (pattern === "" || pattern === ".") return /^/;
  const source = pattern
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => {
      if (part === "**/") return "(?:.*/)?";
      if (part === "**") return ".*";
      if (part === "*") return "[^/]*";
      if (part === "?") return "[^/]";
      return part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
    })
    .join("");
  return new RegExp(`^${source}(?:/.*)?$`, "s");
}
