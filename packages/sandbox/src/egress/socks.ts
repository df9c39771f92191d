// SOCKS5 (RFC 1928) without authentication: CONNECT to names and addresses.
import type { Duplex } from "node:stream";
import { fromV4, parseAddress } from "./addresses.ts";
import type { EgressDoor } from "./door.ts";
import type { Client } from "./flow.ts";
import { Failure, Refusal } from "./refusal.ts";
import { tunnel } from "./tunnel.ts";

const replies = {
  done: 0,
  failed: 1,
  refused: 2,
  unreachable: 4,
  connectionRefused: 5,
  timeout: 6,
  command: 7,
  address: 8,
};

export async function serveSocks(door: EgressDoor, client: Client): Promise<void> {
  const { stream } = client;
  const read = (length: number) => readExactly(stream, length);
  const [, methods] = await read(2);
  if (!(await read(methods!)).includes(0)) return void stream.end(Buffer.from([5, 0xff]));
  stream.write(Buffer.from([5, 0]));
  const head = await read(4);
  const [version, command, reserved, type] = head;
  if (version !== 5 || reserved !== 0) return void stream.destroy();
  const host = await readHost(read, type!);
  const port = (await read(2)).readUInt16BE();
  if (host === undefined) return answer(stream, replies.address);
  if (command !== 1) return answer(stream, replies.command);
  let ready = false;
  try {
    const target = await door.admit(host, port, "socks", client);
    await tunnel(door, client, target, () => {
      ready = true;
      stream.write(reply(replies.done));
    });
  } catch (error) {
    if (ready) stream.destroy();
    else answer(stream, replyTo(error));
  }
}

async function readHost(
  read: (length: number) => Promise<Buffer>,
  type: number,
): Promise<string | undefined> {
  if (type === 1) return fromV4(BigInt((await read(4)).readUInt32BE())).text;
  if (type === 4) return parseAddress((await read(16)).toString("hex").replace(/(....)(?!$)/g, "$1:"))?.text;
  if (type === 3) {
    const [length] = await read(1);
    return length === 0 ? undefined : (await read(length!)).toString("latin1");
  }
  return undefined;
}

function replyTo(error: unknown): number {
  if (error instanceof Refusal) return replies.refused;
  if (!(error instanceof Failure)) return replies.failed;
  if (error.kind === "refused") return replies.connectionRefused;
  return error.kind === "timeout" ? replies.timeout : replies.unreachable;
}

function reply(code: number): Buffer {
  return Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
}

function answer(stream: Duplex, code: number): void {
  stream.end(reply(code));
  stream.resume();
}

/** Takes exactly so many bytes; rejects if the stream ends before. */
function readExactly(stream: Duplex, length: number): Promise<Buffer> {
  if (length === 0) return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    const events = ["end", "close", "error"] as const;
    const leave = () => {
      stream.off("readable", look);
      for (const event of events) stream.off(event, fail);
    };
    const look = () => {
      const bytes = stream.read(length) as Buffer | null;
      if (bytes === null) return;
      leave();
      if (bytes.length === length) resolve(bytes);
      else reject(new Error("the connection ended early"));
    };
    const fail = () => {
      leave();
      reject(new Error("the connection ended early"));
    };
    stream.on("readable", look);
    for (const event of events) stream.on(event, fail);
    look();
  });
}
