// A real DNS server on loopback that answers what a test wants and remembers what it was asked.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export interface NameServer {
  /** `address:port`. */
  readonly address: string;
  /** Every question that came, as `A name`. */
  readonly questions: string[];
  /** What a name leads to from now on; IPv4 and IPv6 addresses. */
  set(name: string, addresses: readonly string[], ttl?: number): void;
  /** Answers nothing any more. */
  silence(): void;
  close(): void;
}

const types: Record<number, string> = { 1: "A", 28: "AAAA", 16: "TXT", 65: "HTTPS", 5: "CNAME" };

export async function startNameServer(): Promise<NameServer> {
  const names = new Map<string, { addresses: readonly string[]; ttl: number }>();
  const questions: string[] = [];
  let isSilent = false;
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const { name, type, end } = readQuestion(query);
    questions.push(`${types[type] ?? type} ${name}`);
    if (isSilent) return;
    const known = names.get(name);
    const wanted = (known?.addresses ?? []).filter((address) => address.includes(":") === (type === 28));
    const answers =
      type === 1 || type === 28 ? wanted.map((address) => record(address, type, known!.ttl)) : [];
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
    head.writeUInt16BE(answers.length, 6);
    head.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    questions,
    set: (name, addresses, ttl = 60) => void names.set(name, { addresses, ttl }),
    silence: () => {
      isSilent = true;
    },
    close: () => socket.close(),
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join("."), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function record(address: string, type: number, ttl: number): Buffer {
  const data = type === 1 ? Buffer.from(address.split(".").map(Number)) : v6Bytes(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function v6Bytes(address: string): Buffer {
  const [head = "", tail = ""] = address.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(missing).fill("0"), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
}
