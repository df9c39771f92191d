// Structured lines on standard error, one JSON object each.

const levels = { debug: 0, info: 1, warn: 2, error: 3 } as const;

export type Level = keyof typeof levels;

let least: number = levels.info;

// Nobody reads any more. An error that is not caught would be logged, and so fail again, for ever.
process.stderr.on("error", () => {});

export function setLevel(level: Level): void {
  least = levels[level];
}

export function log(level: Level, message: string, fields: Record<string, unknown> = {}): void {
  if (levels[level] < least) return;
  const line = JSON.stringify({ at: new Date().toISOString(), level, message, ...fields }, replaceErrors);
  process.stderr.write(`${line}\n`);
}

function replaceErrors(_key: string, value: unknown): unknown {
  if (value instanceof Error)
    return { name: value.name, message: value.message, stack: value.stack, cause: value.cause };
  return typeof value === "bigint" ? Number(value) : value;
}
