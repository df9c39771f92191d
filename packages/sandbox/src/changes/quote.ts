// Names as git writes them in patches. A name may hold anything but a NUL, and a sandbox chose it: written as it is, a
// newline in it would let it write lines of the patch.

const escapes = new Map([
  [0x07, "\\a"],
  [0x08, "\\b"],
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0b, "\\v"],
  [0x0c, "\\f"],
  [0x0d, "\\r"],
  [0x22, '\\"'],
  [0x5c, "\\\\"],
]);

/** The name itself where it is plain, else in quotes with what is not plain escaped. */
export function quoted(name: Uint8Array): string {
  let text = "";
  for (const byte of name) {
    const named = escapes.get(byte);
    if (named !== undefined) text += named;
    else if (byte < 0x20 || byte > 0x7e) text += `\\${byte.toString(8).padStart(3, "0")}`;
    else text += String.fromCharCode(byte);
  }
  return text.length === name.length ? text : `"${text}"`;
}
