// What every benchmark prints: one JSON document with --json, a table for people without.
import { cpus, release, totalmem } from "node:os";

export interface Row {
  /** What was measured, as a sentence. */
  what: string;
  value: number;
  unit: string;
  /** What it is compared with. */
  versus?: string;
  /** value ÷ the other's value, medians of interleaved repetitions. */
  ratio?: number;
  want?: "<=" | ">=";
  target?: number;
  met?: boolean;
  /** Where there is something to say. */
  note?: string;
}

export class Report {
  readonly #rows: Row[] = [];
  readonly #json = process.argv.includes("--json");

  /** Adds a row and judges it: the ratio where there is one, the value otherwise. */
  add(row: Row): void {
    const judged = {
      ...row,
      value: round(row.value),
      ...(row.ratio !== undefined && { ratio: round(row.ratio) }),
    };
    if (row.want && row.target !== undefined) {
      const number = row.ratio ?? row.value;
      judged.met = row.want === "<=" ? number <= row.target : number >= row.target;
    }
    this.#rows.push(judged);
    progress(line(judged));
  }

  /** Prints everything; the exit code stays 0, because a missed number is a finding, not a failure. */
  print(): void {
    const machine = {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      memory_gb: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
      node: process.version,
    };
    if (this.#json) console.log(JSON.stringify({ machine, rows: this.#rows }, null, 2));
    else {
      console.log(`${machine.cores} × ${machine.cpu}, ${machine.memory_gb} GB, Linux ${machine.kernel}\n`);
      for (const row of this.#rows) console.log(line(row));
    }
  }
}

export function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

function line(row: Row): string {
  const mark = row.met === undefined ? " " : row.met ? "✓" : "✗";
  const compared = row.ratio === undefined ? "" : ` = ${row.ratio} × ${row.versus}`;
  const wanted = row.want ? ` (want ${row.want} ${row.target})` : "";
  return `${mark} ${row.what}: ${row.value} ${row.unit}${compared}${wanted}${row.note ? ` — ${row.note}` : ""}`;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
