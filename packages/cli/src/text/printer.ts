import type { Io } from "../io/io.ts";
import { stringify, toJson } from "./json.ts";
import { harmless, printable, printableLines } from "./neutralise.ts";
import { type Paint, paintFor } from "./style.ts";
import { formatTable } from "./table.ts";

/** Prints what commands have to say, harmless on a terminal and exact elsewhere. */
export class Printer {
  readonly paint: Paint;
  readonly #io: Io;

  constructor(io: Io) {
    this.#io = io;
    this.paint = paintFor(io.stdout, io.env);
  }

  /** A name or other text that may come from a sandbox, for one line. */
  safe(text: string): string {
    return this.#io.stdout.isTerminal ? printable(text) : text.replaceAll("\n", "\\n");
  }

  async line(text = ""): Promise<void> {
    await this.text(`${text}\n`);
  }

  /** Whatever it was made from, it cannot act upon a terminal; `safe` also keeps it on its line. */
  async text(text: string): Promise<void> {
    const { stdout } = this.#io;
    await stdout.write(stdout.isTerminal ? harmless(text) : text);
  }

  /** A table with a heading; cells must be one line. */
  async table(heading: readonly string[], rows: readonly (readonly string[])[]): Promise<void> {
    const painted = heading.map((cell) => this.paint("bold", cell));
    await this.text(formatTable([painted, ...rows]));
  }

  /** The same without a heading. */
  async rows(rows: readonly (readonly string[])[]): Promise<void> {
    await this.text(formatTable(rows));
  }

  /** One document. */
  async json(value: unknown): Promise<void> {
    await this.#io.stdout.write(`${stringify(toJson(value) ?? null, 2)}\n`);
  }

  /** One document per line, for what streams. */
  async jsonLine(value: unknown): Promise<void> {
    await this.#io.stdout.write(`${stringify(toJson(value) ?? null)}\n`);
  }

  /** A word to the reader that is not part of the output. */
  async note(text: string): Promise<void> {
    const { stderr } = this.#io;
    await stderr.write(`caisson: ${stderr.isTerminal ? printableLines(text) : text}\n`);
  }
}
