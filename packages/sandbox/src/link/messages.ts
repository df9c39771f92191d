import type { MessageInitShape } from "@bufbuild/protobuf";
import { rules } from "@caisson/contract";
import { decodeMessage, encodeMessage } from "@caisson/contract/codec";
import {
  type Change,
  Change_Kind,
  ChangeSchema,
  type Connect,
  Connect_Kind,
  type Entries,
  EntriesSchema,
  type Exited,
  type FileEntry,
  FileEntry_Type,
  type GuestControl,
  GuestControlSchema,
  type GuestHello,
  HostControlSchema,
  type PortsReport,
  type Sealed,
} from "@caisson/contract/link";
import { firstGuestStream } from "./frame/frame.ts";
import { LinkViolation } from "./violation.ts";

export type HostMessage = NonNullable<MessageInitShape<typeof HostControlSchema>["message"]>;
export type GuestMessage = GuestControl["message"];

const maxEntriesPerFrame = 16_384;
const maxProcesses = 65_536;
const maxHolds = 256;
const maxTextBytes = 4096;
const maxPorts = 4096;
const maxNameBytes = 253;

export function encodeControl(id: number, message: HostMessage): Uint8Array {
  return encodeMessage(HostControlSchema, { id, message });
}

/** A guest's message; what is malformed or out of bounds is a violation. */
export function decodeControl(payload: Uint8Array): GuestControl {
  // Fields of bytes are views of what is decoded, and the payload is only lent.
  const control = decoded(() => decodeMessage(GuestControlSchema, new Uint8Array(payload)));
  switch (control.message.case) {
    case "hello":
      checkHello(control.message.value);
      break;
    case "sealed":
      checkSealed(control.message.value);
      break;
    case "exited":
      checkExited(control.message.value);
      break;
    case "file":
      if (control.message.value.entry) checkEntry(control.message.value.entry);
      break;
    case "connect":
      checkConnect(control.message.value);
      break;
    case "ports":
      checkPorts(control.message.value);
      break;
  }
  return control;
}

export function decodeEntries(payload: Uint8Array): Entries {
  checkEntryCount(payload);
  const entries = decoded(() => decodeMessage(EntriesSchema, payload));
  entries.entries.forEach(checkEntry);
  return entries;
}

export function decodeChange(payload: Uint8Array): Change {
  const change = decoded(() => decodeMessage(ChangeSchema, payload));
  require(change.kind > 0 && change.kind <= Change_Kind.OVERFLOW, "a change of an unknown kind");
  require(change.path.length <= rules.paths.max_bytes, "a path is too long");
  require(change.type <= FileEntry_Type.SPECIAL, "a file of an unknown type");
  return change;
}

/** A number that JavaScript holds exactly. */
export function position(value: bigint): number {
  require(value <= BigInt(Number.MAX_SAFE_INTEGER), "a position is out of range");
  return Number(value);
}

function checkHello(hello: GuestHello): void {
  require(hello.build.length <= 256, "a text is too long");
  require(hello.processes.length <= maxProcesses, "too many processes");
  require(hello.nextStream <= 0x8000_0000, "a stream number is out of range");
  const streams = new Set<number>();
  for (const process of hello.processes) {
    require(process.stream > 0 && !streams.has(process.stream), "a stream number is out of range");
    streams.add(process.stream);
    position(process.firstPosition);
    position(process.stdinPosition);
    if (!process.exited) continue;
    require(process.exited.stream === process.stream, "an exit is of another process");
    checkExited(process.exited);
  }
}

function checkSealed(sealed: Sealed): void {
  require(sealed.holds.length <= maxHolds, "too many holds");
  for (const { name, by, detail } of sealed.holds) {
    require([name, by, detail].every((text) => text.length <= maxTextBytes), "a text is too long");
  }
}

function checkExited(exited: Exited): void {
  require(exited.stream > 0, "a stream number is out of range");
  require(exited.code >= -1 && exited.code <= 255 && exited.signal <= 64, "an exit that no process has");
  require((exited.code === -1) === (exited.signal !== 0), "an exit that no process has");
  position(exited.position);
}

function checkConnect(connect: Connect): void {
  const { stream, kind, name, port } = connect;
  require(stream >= firstGuestStream, "a stream number is out of range");
  if (kind === Connect_Kind.PROXY) {
    require(name === "" && port === 0, "a connection to the proxy that goes elsewhere");
    return;
  }
  require(kind === Connect_Kind.TRANSPARENT, "a connection of an unknown kind");
  require(name.length <= maxNameBytes && /^[a-z0-9_.-]+$/.test(name), "a name that is none");
  require(isPort(port), "a port that is none");
}

function checkPorts(report: PortsReport): void {
  require(report.ports.length <= maxPorts, "too many ports");
  for (const { port, address, command } of report.ports) {
    require(isPort(port), "a port that is none");
    require(address.length <= 64 && /^[0-9a-f.:]+$/.test(address), "an address that is none");
    require(command.length <= 256, "a text is too long");
  }
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}

function checkEntry(entry: FileEntry): void {
  require(entry.path.length <= rules.paths.max_bytes, "a path is too long");
  require(entry.target.length <= rules.paths.max_bytes, "a path is too long");
  require(entry.type <= FileEntry_Type.SPECIAL, "a file of an unknown type");
  require(entry.mode <= 0o177777, "a file of an unknown mode");
  require(entry.etag.length <= 128, "a text is too long");
}

/** Counts the entries before they are decoded: two bytes can become an object of hundreds. */
function checkEntryCount(payload: Uint8Array): void {
  let count = 0;
  for (let at = 0; at < payload.length; count += 1) {
    require(payload[at] === 0x0a && count < maxEntriesPerFrame, "a listing that is none");
    let length = 0;
    let shift = 0;
    let byte: number;
    do {
      at += 1;
      require(at < payload.length && shift <= 21, "a listing that is none");
      byte = payload[at]!;
      length |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    at += 1 + length;
  }
}

function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch {
    throw new LinkViolation("a message that cannot be decoded");
  }
}

function require(holds: boolean, rule: string): void {
  if (!holds) throw new LinkViolation(rule);
}
