const lineEnd = 10;
/** HTTP/2 is none of it: what follows its first line are no lines. */
const version = /http\/[01]/i;
/** As much of what came before as the version could begin in. */
const tailLength = 6;

/**
 * Follows what a program says until its first line is whole: only then does a server act on it, and it is HTTP/1 if that line names a
 * version, whatever its method. Empty lines before it do not count.
 */
export class FirstLine {
  #tail = "";
  #named = false;
  #begun = false;

  /** Each piece as it comes, until it is known. */
  feed(bytes: Buffer): "more" | "http" | "other" {
    let at = 0;
    if (!this.#begun) {
      while (at < bytes.length && (bytes[at] === lineEnd || bytes[at] === 13)) at++;
      if (at === bytes.length) return "more";
      this.#begun = true;
    }
    const end = bytes.indexOf(lineEnd, at);
    const text = this.#tail + bytes.toString("latin1", at, end < 0 ? bytes.length : end);
    this.#named ||= version.test(text);
    this.#tail = text.slice(-tailLength);
    if (end < 0) return "more";
    return this.#named ? "http" : "other";
  }
}
