import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connectSocket } from "../../keeper/connect.ts";
import { ask, lost, newToken, openWords, reading, tellTime, wakeWords } from "../microvm/control.ts";

/** The sockets behind a machine's two serial ports. */
export interface Ports {
  control: string;
  data: string;
}

/** What a machine may have said to an earlier connection and still have on its way. */
const maxStaleBytes = 16 * 1024 * 1024;

/**
 * Opens the link to a machine. A serial port is one endless stream, so the first process of the machine is told first,
 * on the control port, that somebody comes, and by what token it will know: what lies before that is of an earlier
 * connection. It also gets a seed and the time, because it may be a copy that has just come to life.
 */
export function connectPort(ports: Ports, withinMs = 30_000): Promise<Duplex> {
  const token = newToken();
  const signal = AbortSignal.timeout(withinMs);
  return openPort(ports, async (control, data) => {
    const begun = skipTo(data, Buffer.from(token), signal);
    begun.catch(() => {});
    const tookMs = await ask(control, openWords(token), token, signal);
    data.write(token);
    await Promise.all([begun, tellTime(control, signal, tookMs)]);
  });
}

/**
 * Opens the link to a copy of a parked machine: nothing was ever said on its port, so that it begins without a token. Nothing is
 * said on it before the machine has what must be its own.
 */
export function wakePort(ports: Ports, name: string, withinMs = 30_000): Promise<Duplex> {
  const token = newToken();
  const signal = AbortSignal.timeout(withinMs);
  return openPort(ports, async (control) => {
    const tookMs = await ask(control, wakeWords(token, name), token, signal);
    await tellTime(control, signal, tookMs);
  });
}

/** The data port, once what has to be said on the control port was said. */
async function openPort(
  ports: Ports,
  say: (control: Socket, data: Socket) => Promise<void>,
): Promise<Duplex> {
  const control = await connectSocket(ports.control);
  control.on("error", () => {});
  try {
    // Connected to first: a port whose host is not there makes the machine look again and again.
    const data = await connectSocket(ports.data);
    data.on("error", () => {});
    try {
      await say(control, data);
      return data;
    } catch (error) {
      data.destroy();
      throw error;
    }
  } finally {
    control.destroy();
  }
}

/** Makes a machine whose wall is closed ready to be copied; its link must be closed. */
export function parkMachine(control: string, withinMs: number): Promise<void> {
  return order(control, (token) => `park ${token}`, withinMs);
}

/** Resolves when a machine's first process and its guest both answer. */
export function pingMachine(control: string, withinMs: number): Promise<void> {
  return order(control, (token) => `ping ${token}`, withinMs);
}

/** Sets the clock of a machine that stood still. */
export function setClock(control: string): Promise<void> {
  return conversing(control, (port) => tellTime(port, AbortSignal.timeout(30_000)));
}

/** Has everything done once that a sandbox does first, so that it is quicker then. */
export function rehearse(control: string, withinMs: number): Promise<void> {
  return order(control, (token) => `rehearse ${token}`, withinMs);
}

/** Bounds the memory of everything inside; 0: as much as the machine has. */
export function limitMachine(control: string, bytes: number): Promise<void> {
  return order(control, (token) => `limit ${token} ${bytes}`, 30_000);
}

function order(path: string, line: (token: string) => string, withinMs: number): Promise<void> {
  const token = newToken();
  return conversing(path, async (control) => {
    await ask(control, line(token), token, AbortSignal.timeout(withinMs));
  });
}

async function conversing(path: string, say: (control: Socket) => Promise<void>): Promise<void> {
  const control = await connectSocket(path);
  control.on("error", () => {});
  try {
    await say(control);
  } finally {
    control.destroy();
  }
}

/** Reads up to and including the token. Nothing follows: a guest says nothing before it was spoken to. */
async function skipTo(data: Socket, token: Buffer, signal: AbortSignal): Promise<void> {
  let seen = Buffer.alloc(0);
  let skipped = 0;
  const rest = await reading(data, signal, (bytes) => {
    seen = Buffer.concat([seen, bytes]);
    const at = seen.indexOf(token);
    if (at >= 0) return seen.subarray(at + token.length);
    const keep = Math.min(seen.length, token.length - 1);
    skipped += seen.length - keep;
    seen = seen.subarray(seen.length - keep);
    if (skipped > maxStaleBytes) throw lost("the machine does not find the link's beginning");
    return undefined;
  });
  if (rest.length > 0) throw lost("the machine speaks before it was spoken to");
}
