// Patches of what is not text, in git's own form: both contents whole, compressed, in base 85.
import { hash } from "node:crypto";
import { deflateSync } from "node:zlib";
import { type LayerChange, LayerFileType, type LayerState } from "@caisson/contract/keeper";
import { quoted } from "./quote.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/** Bytes in one line. */
const lineBytes = 52;

/** Undefined where a content is missing, for instance because it is too large. */
export function binaryPatch(change: LayerChange): string | undefined {
  const [before, after] = [contentOf(change.old), contentOf(change.new)];
  if (before === undefined || after === undefined) return undefined;
  const [oldMode, newMode] = [modeOf(change.old), modeOf(change.new)];
  const name = quoted(change.path);
  const from = change.from.length > 0 ? quoted(change.from) : name;
  const lines = [`diff --git ${inside("a/", from)} ${inside("b/", name)}`];
  if (!oldMode) lines.push(`new file mode ${newMode}`);
  else if (!newMode) lines.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) lines.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  if (change.from.length > 0) lines.push("similarity index 100%", `rename from ${from}`, `rename to ${name}`);
  if (Buffer.compare(before, after) !== 0 || !oldMode || !newMode) {
    lines.push(
      `index ${blobId(change.old && before)}..${blobId(change.new && after)}`,
      "GIT binary patch",
      ...literal(after),
      ...literal(before),
    );
  }
  return `${lines.join("\n")}\n`;
}

function literal(content: Buffer): string[] {
  const packed = deflateSync(content);
  const lines = [`literal ${content.length}`];
  for (let at = 0; at < packed.length; at += lineBytes) {
    const piece = packed.subarray(at, at + lineBytes);
    // The length is a letter: A to Z for 1 to 26, a to z for 27 to 52.
    const length = String.fromCharCode(piece.length <= 26 ? 64 + piece.length : 70 + piece.length);
    lines.push(length + base85(piece));
  }
  return [...lines, ""];
}

function base85(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const word = Buffer.alloc(4);
    bytes.copy(word, 0, at, Math.min(at + 4, bytes.length));
    let value = word.readUInt32BE(0);
    let group = "";
    for (let place = 0; place < 5; place++) {
      group = digits[value % 85]! + group;
      value = Math.floor(value / 85);
    }
    text += group;
  }
  return text;
}

function blobId(content: Buffer | undefined): string {
  if (content === undefined) return "0".repeat(40);
  return hash("sha1", Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]));
}

function contentOf(state: LayerState | undefined): Buffer | undefined {
  if (state === undefined) return Buffer.alloc(0);
  if (state.type === LayerFileType.SYMLINK) return Buffer.from(state.target);
  if (state.type !== LayerFileType.REGULAR) return undefined;
  if (state.size === 0n) return Buffer.alloc(0);
  return state.content && Buffer.from(state.content);
}

function modeOf(state: LayerState | undefined): string {
  if (state === undefined) return "";
  if (state.type === LayerFileType.SYMLINK) return "120000";
  return (state.mode & 0o111) === 0 ? "100644" : "100755";
}

function inside(prefix: string, name: string): string {
  return name.startsWith('"') ? `"${prefix}${name.slice(1)}` : `${prefix}${name}`;
}
