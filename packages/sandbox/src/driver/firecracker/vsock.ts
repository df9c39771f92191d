import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ask, lost, newToken, openWords, reading, tellTime } from "../microvm/control.ts";
import { connectOwned } from "./socket.ts";

/** On which numbers a machine's guest and its first process listen (guest/src/vm). */
export const linkPort = 1024;
const controlPort = linkPort + 1;
const maxAnswerBytes = 64;

/** Where a machine's own sockets come out on the host, and who it is there. */
export interface Door {
  socket: string;
  uid: number;
}

/** Opens the link. Before it the machine gets a seed and the time: it may be a copy that has just come to life. */
export async function connectLink(door: Door, withinMs = 30_000): Promise<Duplex> {
  const signal = AbortSignal.timeout(withinMs);
  await conversing(door, signal, async (control) => {
    const token = newToken();
    await tellTime(control, signal, await ask(control, openWords(token), token, signal));
  });
  return await connectPort(door, linkPort, signal);
}

/** Resolves when the machine's first process has started the guest. */
export function pingMachine(door: Door, signal: AbortSignal): Promise<void> {
  return order(door, (token) => `ping ${token}`, signal);
}

/** Bounds the memory of everything inside; 0: as much as the machine has. */
export function limitMachine(door: Door, bytes: number): Promise<void> {
  return order(door, (token) => `limit ${token} ${bytes}`, AbortSignal.timeout(30_000));
}

/** Sets the clock of a machine that stood still. */
export function setClock(door: Door): Promise<void> {
  const signal = AbortSignal.timeout(30_000);
  return conversing(door, signal, (control) => tellTime(control, signal));
}

function order(door: Door, words: (token: string) => string, signal: AbortSignal): Promise<void> {
  const token = newToken();
  return conversing(door, signal, async (control) => {
    await ask(control, words(token), token, signal);
  });
}

async function conversing(
  door: Door,
  signal: AbortSignal,
  say: (control: Socket) => Promise<void>,
): Promise<void> {
  const control = await connectPort(door, controlPort, signal);
  control.on("error", () => {});
  try {
    await say(control);
  } finally {
    control.destroy();
  }
}

/** All of a machine's ports are behind one socket: which is meant is said first. */
async function connectPort({ socket, uid }: Door, port: number, signal: AbortSignal): Promise<Socket> {
  const opened = await connectOwned(socket, uid);
  try {
    let said = "";
    await reading(
      opened,
      signal,
      (bytes) => {
        said += bytes.toString("latin1");
        const end = said.indexOf("\n");
        if (end < 0 && said.length <= maxAnswerBytes) return undefined;
        if (!/^OK \d{1,10}\n$/.test(said)) throw lost("the machine speaks before it was spoken to");
        return true;
      },
      () => opened.write(`CONNECT ${port}\n`),
    );
    return opened;
  } catch (error) {
    opened.destroy();
    throw error;
  }
}
