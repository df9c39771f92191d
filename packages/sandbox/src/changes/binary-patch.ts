// Patches of what is not text, in git's own form: both contents whole, compressed, in base 85.
import { hash } from "node:crypto";
import { deflateSync } from "node:zlib";
import { LayerFileType, type LayerState } from "@caisson/contract/keeper";
import { headOf, type Section } from "./sections.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/** Bytes in one line. */
const lineBytes = 52;

/** One section; undefined where a content is missing, for instance because it is too large. */
export function binaryPatch(section: Section): string | undefined {
  const { old, now } = section;
  const [before, after] = [contentOf(old), contentOf(now)];
  if (before === undefined || after === undefined) return undefined;
  const hasContent = !old || !now || Buffer.compare(before, after) !== 0;
  const lines = headOf(section, hasContent);
  if (hasContent) {
    lines.push(
      `index ${blobId(old && before)}..${blobId(now && after)}`,
      "GIT binary patch",
      ...literal(after),
      ...literal(before),
    );
  }
  return lines.map((line) => `${line}\n`).join("");
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
  if (state.size === 0n) return Buffer.alloc(0);
  return state.content && Buffer.from(state.content);
}
