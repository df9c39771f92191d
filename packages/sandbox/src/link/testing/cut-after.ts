import { Duplex } from "node:stream";

/** A stream that is cut after so many bytes have come, wherever that is in a frame. */
export function cutAfter(inner: Duplex, bytes: number): Duplex {
  let left = bytes;
  const outer = new Duplex({
    read() {
      inner.resume();
    },
    write(chunk, _encoding, done) {
      inner.write(chunk, () => done());
    },
    final(done) {
      inner.end(done);
    },
    destroy(error, done) {
      inner.destroy();
      done(error);
    },
  });
  inner.on("data", (chunk: Buffer) => {
    const piece = chunk.subarray(0, left);
    left -= piece.length;
    if (piece.length > 0 && !outer.push(piece)) inner.pause();
    if (left === 0) outer.destroy();
  });
  inner.on("close", () => outer.destroy());
  inner.on("error", () => outer.destroy());
  return outer;
}
