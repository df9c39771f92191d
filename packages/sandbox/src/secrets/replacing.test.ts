import assert from "node:assert/strict";
import { test } from "node:test";
import { Replacing, replaceAll } from "./replacing.ts";

const pair = (from: string, to: string) => ({ from: Buffer.from(from), to: Buffer.from(to) });

async function through(pieces: string[], replacements: ReturnType<typeof pair>[]): Promise<string> {
  const stream = new Replacing(replacements);
  const out = stream.toArray();
  for (const piece of pieces) stream.write(Buffer.from(piece));
  stream.end();
  return Buffer.concat(await out).toString();
}

test("what lies across pieces is found, wherever they are cut", async () => {
  const text = "aaSECRETbbSECRSECRETcc";
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      assert.equal(await through(pieces, [pair("SECRET", "x")]), "aaxbbSECRxcc", pieces.join("|"));
    }
  }
});

test("what cannot become one is not held back", async () => {
  const stream = new Replacing([pair("SECRET", "x")]);
  stream.write(Buffer.from("hello SEC"));
  assert.equal(String(stream.read()), "hello ");
  stream.write(Buffer.from("ond"));
  assert.equal(String(stream.read()), "SECond");
  stream.end();
});

test("of several at one place the longest is taken", () => {
  const found: string[] = [];
  const replaced = replaceAll(Buffer.from("abcd ab"), [pair("ab", "1"), pair("abcd", "2")], ({ to }) =>
    found.push(String(to)),
  );
  assert.equal(String(replaced), "2 1");
  assert.deepEqual(found, ["2", "1"]);
});

test("without anything to replace, bytes pass as they are", async () => {
  assert.equal(await through(["any", "thing"], []), "anything");
});
