import assert from "node:assert/strict";
import { test } from "node:test";
import { Neutraliser, printable, printableLines } from "./neutralise.ts";

function clean(bytes: Uint8Array | string, cuts: number[] = []): string {
  const whole = Buffer.from(bytes as string);
  const neutraliser = new Neutraliser();
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const cut of [...cuts, whole.length]) {
    parts.push(neutraliser.push(whole.subarray(at, cut)));
    at = cut;
  }
  parts.push(neutraliser.end());
  return Buffer.concat(parts).toString("utf8");
}

test("plain text passes as it is", () => {
  for (const text of ["", "hello\n", "a\tb\r\nc", "naïve – 日本語 🎉\n"]) assert.equal(clean(text), text);
});

test("escape sequences become visible", () => {
  assert.equal(clean("\u001b[31mred\u001b[0m"), "^[[31mred^[[0m");
  assert.equal(clean("\u001b]52;c;aGk=\u0007"), "^[]52;c;aGk=^G");
  assert.equal(clean("\u001b]8;;http://x\u001b\\"), "^[]8;;http://x^[\\");
  assert.equal(clean("\u009b31m"), "<U+009B>31m");
  assert.equal(clean(Buffer.from([0x9b, 0x33, 0x31, 0x6d])), "\ufffd31m");
});

test("other control characters, DEL and bidi become visible", () => {
  assert.equal(clean("a\u0000b\u0008c\u007f"), "a^@b^Hc^?");
  assert.equal(clean("\u202eevil\u202c\u2066x\u2069\u200f"), "<U+202E>evil<U+202C><U+2066>x<U+2069><U+200F>");
  assert.equal(clean("\u{e0041}"), "<U+E0041>");
});

test("a return cannot cover what was written before", () => {
  assert.equal(clean("safe\rEVIL\n"), "safe\nEVIL\n");
  assert.equal(clean("end\r"), "end\n");
  assert.equal(clean("a\r\nb"), "a\r\nb");
});

test("it does not matter where the bytes are cut", () => {
  const text = "a\r\nb\rc é日🎉\u001b[0m\u009b\u202e\r\n";
  const whole = clean(text);
  const { length } = Buffer.from(text);
  for (let first = 0; first <= length; first++) {
    for (let second = first; second <= length; second += 3) assert.equal(clean(text, [first, second]), whole);
  }
});

test("names stay on one line, messages keep theirs", () => {
  assert.equal(printable("a\nb\u001b"), "a^Jb^[");
  assert.equal(printableLines("a\nb\u001b\rc"), "a\nb^[\nc");
});
