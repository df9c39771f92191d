import assert from "node:assert/strict";
import { test } from "node:test";
import { CaissonError } from "@caisson/contract";
import type { HostControl } from "@caisson/contract/link";
import { frameType, windowBytes } from "./frame/frame.ts";
import { openGuest } from "./open.ts";
import type { FakeConnection } from "./testing/fake-connection.ts";
import { FakeGuest, type FakeGuestOptions } from "./testing/fake-guest.ts";
import { PatternSink } from "./testing/pattern-sink.ts";
import { Random } from "./testing/random.ts";
import { LinkViolation } from "./violation.ts";

const never = new AbortController().signal;
const big = new Random(1).bytes(5_000_000);

async function* pieces(content: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

async function collect(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const piece of content) parts.push(piece.slice());
  return Buffer.concat(parts);
}

async function opened(options: FakeGuestOptions = {}) {
  const fake = await new FakeGuest(options).listen();
  const guest = await openGuest(fake.connect);
  const close = () => {
    guest.close();
    return fake[Symbol.asyncDispose]();
  };
  return { fake, guest, [Symbol.asyncDispose]: close };
}

/** Answers file calls of a kind instead of the fake. */
function answering(
  kind: string,
  answer: (connection: FakeConnection, id: number, stream: number) => void,
): FakeGuestOptions {
  return {
    onControl: (connection, { id, message }: HostControl) => {
      if (message.case !== "file" || message.value.call.case !== kind) return false;
      answer(connection, id, (message.value.call.value as { stream?: number }).stream ?? 0);
      return true;
    },
  };
}

const writeOptions = { path: "/a", mode: 0o644, parents: false, ifMatch: "", maxBytes: 0n };

test("what is written is read back, far beyond a window", async () => {
  await using link = await opened();
  const { files } = link.guest;
  const entry = await files.write(writeOptions, pieces(big, 300_001), never);
  assert.equal(entry.size, 5_000_000n);
  const { entry: read, content } = await files.read("/a", 0n, 0n, never);
  assert.equal(read.size, 5_000_000n);
  assert.ok((await collect(content)).equals(Buffer.from(big)));
});

test("many transfers at once do not mix", async () => {
  await using link = await opened();
  const { files } = link.guest;
  const contents = Array.from({ length: 12 }, (_, i) => new Random(i).bytes(200_000 + i));
  await Promise.all(
    contents.map((content, i) =>
      files.write({ ...writeOptions, path: `/${i}` }, pieces(content, 7000), never),
    ),
  );
  const read = await Promise.all(
    contents.map(async (_, i) => collect((await files.read(`/${i}`, 0n, 0n, never)).content)),
  );
  for (const [i, content] of contents.entries()) assert.ok(read[i]!.equals(Buffer.from(content)));
});

test("a file that is not there is an error of the table", async () => {
  await using link = await opened();
  await assert.rejects(link.guest.files.stat("/none", true, never), { code: "PATH_NOT_FOUND" });
  await assert.rejects(link.guest.files.read("/none", 0n, 0n, never), { code: "PATH_NOT_FOUND" });
});

test("a reader that stops early gives the stream up, and nothing else suffers", async () => {
  await using link = await opened();
  link.fake.contents.set("/big", big);
  const { content } = await link.guest.files.read("/big", 0n, 0n, never);
  for await (const _piece of content) break;
  await link.guest.ping();
  assert.deepEqual(link.fake.files?.resets, [1]);
});

test("a slow reader holds no more than a window, and stalls no other stream", async () => {
  await using link = await opened();
  link.fake.contents.set("/big", big);
  const slow = (await link.guest.files.read("/big", 0n, 0n, never)).content;
  const sink = new PatternSink({ run: 1000 });
  await link.guest.start({ stream: link.guest.nextStream(), argv: ["pattern", "9000000", "1000"] }, sink);
  await sink.exit;
  assert.ok((await collect(slow)).equals(Buffer.from(big)));
});

test("aborting ends a call, a download and an upload, and tells the guest", async () => {
  await using link = await opened(answering("stat", () => {}));
  const { files } = link.guest;
  const stat = new AbortController();
  const call = files.stat("/x", true, stat.signal);
  stat.abort();
  await assert.rejects(call, { code: "CANCELLED" });
  await assert.rejects(files.stat("/x", true, AbortSignal.abort()), { code: "CANCELLED" });

  link.fake.contents.set("/big", big);
  const download = new AbortController();
  const { content } = await files.read("/big", 0n, 0n, download.signal);
  const read = collect(content);
  download.abort();
  await assert.rejects(read, { code: "CANCELLED" });

  const upload = new AbortController();
  let returned = false;
  const endless: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => {
        returned = true;
        return { done: true, value: undefined };
      },
    }),
  };
  const written = files.write(writeOptions, endless, upload.signal);
  setImmediate(() => upload.abort(new DOMException("too slow", "TimeoutError")));
  await assert.rejects(written, { code: "DEADLINE_EXCEEDED" });
  assert.ok(returned);
  await link.guest.ping();
  assert.equal(link.fake.files?.resets.length, 2);
  assert.equal(link.fake.contents.has("/a"), false);
});

test("content that fails drops the file and is the caller's error", async () => {
  await using link = await opened();
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new CaissonError("TOO_LARGE", "more than was allowed");
  }
  await assert.rejects(link.guest.files.write(writeOptions, failing(), never), { code: "TOO_LARGE" });
  await link.guest.ping();
  assert.equal(link.fake.contents.size, 0);
  assert.equal(link.fake.files?.resets.length, 1);
});

test("a guest that refuses an upload early ends it while content is still coming", async () => {
  await using refused = await opened(answering("write", (c, id) => c.fail(id, "PATH_DENIED", "no")));
  await assert.rejects(refused.guest.files.write(writeOptions, pieces(big, 1000), never), {
    code: "PATH_DENIED",
  });
  const reset = answering("write", (c, _id, stream) => c.frame(frameType.reset, stream, new Uint8Array(0)));
  await using dropped = await opened(reset);
  await assert.rejects(dropped.guest.files.write(writeOptions, pieces(big, 1000), never), {
    code: "UNAVAILABLE",
  });
  assert.equal(await dropped.guest.ping(), 0);
});

test("a cut rejects transfers with a retryable error", async () => {
  await using link = await opened();
  link.fake.contents.set("/big", big);
  const { content } = await link.guest.files.read("/big", 0n, 0n, never);
  const read = (async () => {
    for await (const _piece of content) link.fake.cut();
  })();
  await assert.rejects(read, { code: "UNAVAILABLE" });
  async function* cutting(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    link.fake.cut();
    yield* pieces(big, 100_000);
  }
  await assert.rejects(link.guest.files.write(writeOptions, cutting(), never), { code: "UNAVAILABLE" });
  assert.ok((await link.guest.files.stat("/big", true, never)).size > 0n);
});

test("a listing comes frame by frame, a watch begins with nothing and ends when it is left", async () => {
  await using link = await opened();
  for (let i = 0; i < 50; i += 1) link.fake.contents.set(`/${i}`, new Uint8Array(i));
  const names: string[] = [];
  for await (const { entries } of link.guest.files.list("/", false, never)) {
    names.push(...entries.map(({ path }) => Buffer.from(path).toString()));
  }
  assert.deepEqual(names, [...link.fake.contents.keys()]);
  const changes: unknown[] = [];
  for await (const change of link.guest.files.watch("/", true, never)) {
    changes.push(change && Buffer.from(change.path).toString());
    if (changes.length === 2) break;
  }
  assert.deepEqual(changes, [undefined, "/new"]);
  await link.guest.ping();
  assert.equal(link.fake.files?.resets.length, 1);
});

test("a file stream that breaks the rules ends the guest", async () => {
  const lies: Record<string, (connection: FakeConnection, stream: number) => void> = {
    "beyond the window": (c, stream) => {
      c.data(stream, 0, new Uint8Array(windowBytes));
      c.data(stream, 0, Uint8Array.of(1));
    },
    "unknown tag": (c, stream) => c.data(stream, 1, Uint8Array.of(1)),
    "beyond what was sent": (c, stream) => c.ack(stream, 1),
    "stream that is over": (c, stream) => {
      c.frame(frameType.end, stream, new Uint8Array(0));
      c.data(stream, 0, Uint8Array.of(1));
    },
  };
  for (const [rule, lie] of Object.entries(lies)) {
    const options = answering("read", (connection, id, stream) => {
      connection.control(id, { case: "file", value: { entry: { type: 1 } } });
      lie(connection, stream);
    });
    await using link = await opened(options);
    await link.guest.files.read("/x", 0n, 0n, never).catch(() => {});
    const error = await link.guest.lost;
    assert.ok(error instanceof LinkViolation);
    assert.match(error.rule, new RegExp(rule));
  }
});

test("a listing that is none ends the guest, before it is decoded into a million objects", async () => {
  const bomb = Buffer.alloc(200_000);
  for (let i = 0; i < bomb.length; i += 2) bomb[i] = 0x0a;
  const frames = [
    bomb,
    Buffer.from([0x12, 0]),
    Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
    Buffer.from([0x0a, 5]),
  ];
  for (const frame of frames) {
    const options = answering("list", (connection, id, stream) => {
      connection.control(id, { case: "file", value: {} });
      connection.data(stream, 0, frame);
    });
    await using link = await opened(options);
    const listing = (async () => {
      for await (const _entries of link.guest.files.list("/", false, never));
    })();
    await assert.rejects(listing, LinkViolation);
    assert.ok((await link.guest.lost) instanceof LinkViolation);
  }
});
