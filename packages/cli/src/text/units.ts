const durations: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const sizes: Record<string, number> = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** `30s`, `1.5h`, `1h30m`; a bare number is seconds. Milliseconds, or undefined. */
export function parseDuration(text: string): number | undefined {
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text)) return Number(text) * 1000;
  if (!/^(\d{1,9}(\.\d{1,3})?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    total += Number(amount) * durations[unit!]!;
  return Math.round(total);
}

/** `512m`, `2g`, `1.5GiB`, `4096`. Bytes, or undefined. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,3})?)([kmgt]?)(?:i?b)?$/i.exec(text);
  if (!match) return undefined;
  const bytes = Math.round(Number(match[1]) * sizes[match[2]!.toLowerCase()]!);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Three significant digits and a binary unit. */
export function formatSize(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} ${units[unit]}`;
}

/** The largest one or two units of a time, such as `1h 5m`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)}ms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, "m", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "m");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${unit}` : `${large}${unit} ${small}${smallUnit}`;
}

/** How long ago something was. */
export function formatAge(at: Date | undefined, now = Date.now()): string {
  return at ? formatDuration(Math.max(0, now - at.getTime())) : "";
}
