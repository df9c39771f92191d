import type { Client } from "@caisson/client";
import type { Io } from "../io/io.ts";
import { printable } from "../text/neutralise.ts";

/** Whoever waits for longer wants to know for what. */
const tellEveryMs = 1000;
const clearLine = "\r\x1b[K";

/** Tells a person, for as long as they wait for a sandbox, what a driver makes first. */
export async function tellPreparing<T>(io: Io, client: Client, waiting: Promise<T>): Promise<T> {
  if (!io.stderr.isTerminal) return waiting;
  let isOver = false;
  let hasTold = false;
  const tell = async () => {
    const { drivers } = await client.system.capabilities();
    const words = drivers.map(({ preparing }) => preparing).find((said) => said !== "");
    if (isOver || words === undefined) return;
    hasTold = true;
    await io.stderr.write(`${clearLine}caisson: ${printable(words)} …`);
  };
  // A daemon that does not say so still makes the sandbox.
  const timer = setInterval(() => void tell().catch(() => {}), tellEveryMs);
  try {
    return await waiting;
  } finally {
    isOver = true;
    clearInterval(timer);
    if (hasTold) await io.stderr.write(clearLine);
  }
}
