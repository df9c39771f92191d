import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { unpackLegacyLz4 } from "./lz4.ts";
import { unpackKernel } from "./vmlinux.ts";

const kernel = Buffer.concat([Buffer.from("\x7fELF", "latin1"), Buffer.from("a kernel ".repeat(200))]);

/** What a boot loader gets, around a packed kernel. */
function bootImage(payload: Buffer): Buffer {
  const head = Buffer.alloc(2 * 512);
  head[0x1f1] = 1;
  head.write("HdrS", 0x202, "latin1");
  head.writeUInt32LE(16, 0x248);
  head.writeUInt32LE(payload.length, 0x24c);
  return Buffer.concat([head, Buffer.alloc(16), payload, Buffer.from("after it")]);
}

function sized(packed: Buffer, size = kernel.length): Buffer {
  const end = Buffer.alloc(4);
  end.writeUInt32LE(size);
  return Buffer.concat([packed, end]);
}

/** Literals, then copies of what came before at some distance, as `[literals, distance, length]`. */
function lz4Block(...parts: [string, number, number][]): Buffer {
  const length = (rest: number) =>
    rest < 15 ? [] : [...Array(Math.floor((rest - 15) / 255)).fill(255), (rest - 15) % 255];
  return Buffer.concat(
    parts.map(([literals, distance, count]) => {
      const [before, copied] = [Buffer.from(literals, "latin1"), count - 4];
      const token = (Math.min(before.length, 15) << 4) | Math.min(Math.max(copied, 0), 15);
      const copy = count === 0 ? [] : [distance & 255, distance >> 8, ...length(copied)];
      return Buffer.from([token, ...length(before.length), ...before, ...copy]);
    }),
  );
}

function frame(...blocks: Buffer[]): Buffer {
  const pieces = blocks.flatMap((block) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(block.length);
    return [length, block];
  });
  return Buffer.concat([Buffer.from("02214c18", "hex"), ...pieces]);
}

test("a kernel is found in what a boot loader gets, however it was packed", () => {
  assert.equal(unpackKernel(kernel), kernel);
  assert.deepEqual(unpackKernel(bootImage(gzipSync(kernel))), kernel);
  assert.deepEqual(unpackKernel(bootImage(sized(zstdCompressSync(kernel)))), kernel);
  const block = lz4Block(["\x7fELFa kernel ", 9, kernel.length - 13 - 5], ["rnel ", 0, 0]);
  assert.deepEqual(unpackKernel(bootImage(sized(frame(block)))), kernel);
});

test("what is no kernel is refused", () => {
  for (const image of [
    Buffer.alloc(0),
    Buffer.alloc(4096),
    bootImage(Buffer.alloc(0)),
    bootImage(sized(Buffer.from("packed with something else"))),
    bootImage(sized(zstdCompressSync(Buffer.from("no program")), 10)),
    bootImage(sized(frame(lz4Block(["short", 0, 0])), 2 ** 31)),
  ]) {
    assert.throws(() => unpackKernel(image), { code: "NO_DRIVER" });
  }
});

test("LZ4 that reaches beyond what there is is refused", () => {
  assert.equal(unpackLegacyLz4(frame(lz4Block(["ab", 2, 6], ["", 0, 0])), 8).toString(), "abababab");
  for (const [packed, size] of [
    [frame(lz4Block(["ab", 3, 6])), 8],
    [frame(lz4Block(["ab", 0, 6])), 8],
    [frame(lz4Block(["ab", 2, 100])), 8],
    [frame(lz4Block(["abc", 0, 0])), 2],
    [frame(lz4Block(["abc", 0, 0])), 4],
    [frame(Buffer.from([0xf0, 255])), 4],
    [frame(lz4Block(["abc", 0, 0])).subarray(0, -1), 3],
  ] as const) {
    assert.throws(() => unpackLegacyLz4(packed, size), RangeError);
  }
});
