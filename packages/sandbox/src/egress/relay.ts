import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { giveBack } from "@caisson/contract/lent";
import { LinkDuplex } from "../link/stream/link-duplex.ts";
import type { Flow } from "./flow.ts";

/** Passes bytes in both directions until both sides have ended; each side's end and failure reach the other. */
export function relay(client: Duplex, flow: Flow): Promise<void> {
  receive(client, flow);
  send(client, flow);
  return over(client, flow.socket);
}

/** From the outside to the program. */
export function receive(client: Duplex, flow: Flow): void {
  pump(flow.socket, client, (bytes) => flow.count("received", bytes));
}

/** From the program to the outside. */
export function send(client: Duplex, flow: Flow): void {
  pump(client, flow.socket, (bytes) => flow.count("sent", bytes));
}

export function over(client: Duplex, socket: Socket): Promise<void> {
  tie(client, socket);
  return Promise.all([closed(client), closed(socket)]).then(() => {});
}

function pump(from: Duplex, to: Duplex, count: (bytes: number) => void): void {
  const go = () => from.resume();
  // Both write bytes and forget them; whoever else is there may keep them.
  const forgets = to instanceof Socket || to instanceof LinkDuplex;
  from.on("data", (chunk: Buffer) => {
    count(chunk.length);
    // Nobody else has it: what it lies in can be used again once it is written.
    const written = (error?: Error | null) => {
      if (!error && forgets) giveBack(chunk);
    };
    if (to.writable && !to.write(chunk, written)) {
      from.pause();
      to.once("drain", go);
    }
  });
  from.once("end", () => to.end());
}

/** A side that breaks takes the other with it; one that ends in order has ended the other already. */
function tie(a: Duplex, b: Duplex): void {
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const) {
    one.on("error", () => other.destroy());
    one.once("close", () => {
      if (!one.readableEnded || !one.writableFinished) other.destroy();
    });
  }
}

function closed(stream: Duplex): Promise<void> {
  return stream.closed ? Promise.resolve() : new Promise((resolve) => stream.once("close", () => resolve()));
}
