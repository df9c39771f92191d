// What a sandbox writes must not act upon the terminal that shows it: no escape sequences, no other
// control characters, nothing that turns the direction of writing.

const encoder = new TextEncoder();

/** Passes printable text, tabs and line ends; shows everything else as visible text. */
export class Neutraliser {
  readonly #decoder = new TextDecoder("utf-8");
  /** A carriage return whose meaning depends on what comes next. */
  #heldReturn = false;

  /** The next piece of a stream, harmless. Pieces may end anywhere. */
  push(bytes: Uint8Array): Uint8Array {
    if (!this.#heldReturn && isPlain(bytes)) {
      // Bytes of an unfinished character may wait in the decoder.
      const text = this.#decoder.decode(bytes, { stream: true });
      return text.length === bytes.length ? bytes : encoder.encode(this.#clean(text));
    }
    return encoder.encode(this.#clean(this.#decoder.decode(bytes, { stream: true })));
  }

  /** What was held back, at the stream's end. */
  end(): Uint8Array {
    const text = this.#clean(this.#decoder.decode());
    const rest = this.#heldReturn ? `${text}\n` : text;
    this.#heldReturn = false;
    return encoder.encode(rest);
  }

  #clean(text: string): string {
    let input = text;
    if (this.#heldReturn) {
      this.#heldReturn = false;
      input = `\r${input}`;
    }
    if (input.endsWith("\r")) {
      this.#heldReturn = true;
      input = input.slice(0, -1);
    }
    // A return alone would let later text cover earlier text: it becomes a line end.
    return input.replace(/\r(?!\n)/g, "\n").replace(dangerous, visible);
  }
}

/** C0 without tab and line ends, DEL, C1, and the characters that turn the direction or hide. */
const dangerous =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const anyControl =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

function isPlain(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (byte > 126 || (byte < 32 && byte !== 10 && byte !== 9)) return false;
  return true;
}

function visible(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 32) return `^${String.fromCharCode(code + 64)}`;
  if (code === 127) return "^?";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** A name or message on one line, harmless. */
export function printable(text: string): string {
  return text.replace(anyControl, visible);
}

/** Our own colours, and nothing else that begins with an escape. */
const painted = /(\u001b\[(?:1|2|22|31|32|33|36|39)m)/;

/** What we are about to print, harmless: of all that could act upon a terminal only our own colours are left. */
export function harmless(text: string): string {
  if (!text.includes("\u001b")) return printableLines(text);
  return text
    .split(painted)
    .map((part) => (painted.test(part) ? part : printableLines(part)))
    .join("");
}

/** Text of several lines, harmless. */
export function printableLines(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(dangerous, visible);
}
