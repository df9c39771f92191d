// The attempts of the manifest as a table: what must come of each, and where it comes otherwise.
import { exceptionFor, exceptions, manifest } from "./manifest.ts";

export function tierTable(drivers: readonly string[]): string {
  const rows = manifest.groups.map(({ threat, title, cases }) => {
    const cells = drivers.map((driver) => cell(driver, cases));
    return `| ${threat} | ${title} (${cases.length}) | ${cells.join(" | ")} |`;
  });
  const notes = exceptions.map(({ drivers: where, why, gap, cases }, index) => {
    const names = where.map((driver) => `\`${driver}\``).join(", ");
    return `${index + 1}. ${names}${gap ? ", **weaker**" : ""} (${cases.length}): ${why}.`;
  });
  const names = drivers.map((driver) => `\`${driver}\``).join(" | ");
  return [
    `| threat | what holds (attempts) | ${names} |`,
    `|---|---|${"---|".repeat(drivers.length)}`,
    ...rows,
    "",
    ...notes,
  ].join("\n");
}

/** Tried with the manifest's outcome, or the note that says what came instead. */
function cell(driver: string, cases: readonly string[]): string {
  const notes = new Set(cases.flatMap((name) => exceptionFor(driver, name) ?? []));
  return notes.size === 0
    ? "holds"
    : [...notes].map((note) => `note ${exceptions.indexOf(note) + 1}`).join(", ");
}
