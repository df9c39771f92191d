import type { Client, Driver } from "@caisson/client";
import type { Printer } from "../text/printer.ts";

/** One driver, and what it takes on this machine; no times where it is not usable or was not tried. */
export interface TierRow extends Driver {
  /** Until a sandbox is ready, in milliseconds. */
  createMs?: number;
  /** The same of the very first one, where that had to wait for something that is made once. */
  firstMs?: number;
  /** One command in a sandbox that is there, in milliseconds; the median of a few. */
  execMs?: number;
  /** Why it could not be measured. */
  trouble?: string;
}

const execs = 5;
/** No driver takes that long for a sandbox alone. */
const madeSomethingMs = 5000;

/** Every driver there is; with `measure`, the usable ones are tried. */
export async function tierRows(client: Client, measure: boolean): Promise<TierRow[]> {
  const { drivers } = await client.system.capabilities();
  const rows: TierRow[] = [];
  // One after the other: each is to have the machine for itself.
  for (const driver of drivers) {
    rows.push({ ...driver, ...(measure && driver.usable ? await measured(client, driver.name) : {}) });
  }
  return rows;
}

async function measured(client: Client, driver: string): Promise<Partial<TierRow>> {
  try {
    const { createMs: firstMs, ...first } = await tried(client, driver);
    if (firstMs < madeSomethingMs) return { createMs: firstMs, ...first };
    return { ...(await tried(client, driver)), firstMs };
  } catch (thrown) {
    return { trouble: (thrown as Error).message };
  }
}

async function tried(client: Client, driver: string): Promise<{ createMs: number; execMs: number }> {
  const began = performance.now();
  const box = await client.create({ driver });
  const createMs = performance.now() - began;
  try {
    const times: number[] = [];
    for (let i = 0; i < execs; i++) {
      const start = performance.now();
      await box.run(["true"]);
      times.push(performance.now() - start);
    }
    return { createMs, execMs: times.sort((a, b) => a - b)[execs >> 1]! };
  } finally {
    await box.delete({ forget: true });
  }
}

export async function printTiers(print: Printer, rows: readonly TierRow[]): Promise<void> {
  const ms = (value: number | undefined) =>
    value === undefined ? "-" : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  await print.table(
    ["TIER", "DRIVER", "USABLE", "CREATE", "EXEC", "CAN"],
    rows.map((row) => [
      row.tier,
      print.safe(row.name),
      row.usable ? print.paint("green", "yes") : print.paint("yellow", "no"),
      ms(row.createMs),
      ms(row.execMs),
      row.usable ? row.capabilities.map((word) => print.safe(word)).join(", ") : print.safe(row.reason),
    ]),
  );
  for (const { name, fix, firstMs, trouble } of rows) {
    if (fix) await print.line(`${print.safe(name)}: ${print.paint("bold", print.safe(fix))}`);
    if (firstMs !== undefined)
      await print.line(
        `${print.safe(name)}: its first sandbox took ${(firstMs / 1000).toFixed(0)} s, for what is made once`,
      );
    if (trouble) await print.line(`${print.safe(name)} could not be measured: ${print.safe(trouble)}`);
  }
}
