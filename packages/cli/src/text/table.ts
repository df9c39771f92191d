/** Rows in columns as wide as they need; the last column is never padded. */
export function formatTable(
  rows: readonly (readonly string[])[],
  widthOf: (cell: string) => number = width,
): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => {
      widths[index] = Math.max(widths[index] ?? 0, widthOf(cell));
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, index) =>
          index === row.length - 1 ? cell : cell + " ".repeat(widths[index]! - widthOf(cell) + 2),
        )
        .join("")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}

/** Cells that a text takes: our own colours take none, wide characters two. */
export function width(text: string): number {
  let cells = 0;
  for (const character of text.replace(/\u001b\[\d+m/g, "")) {
    const code = character.codePointAt(0)!;
    cells += isWide(code) ? 2 : 1;
  }
  return cells;
}

function isWide(code: number): boolean {
  return (
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd)
  );
}
