import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { CaissonError } from "@caisson/contract/errors";

// The host's words to a machine's first process, one a line (guest/src/vm/control.rs). Each is answered by its token.

const tokenBytes = 32;
const seedBytes = 64;
const maxLineBytes = 4096;
/** What was answered within that leaves a machine's clock right enough. */
const soonMs = 20;
const maxTimesTold = 3;

export function newToken(): string {
  return randomBytes(tokenBytes).toString("hex");
}

/** Somebody comes; with a seed and the time, since the machine may be a copy that has just come to life. */
export function openWords(token: string): string {
  const seed = randomBytes(seedBytes).toString("hex");
  return `open ${token} ${seed} ${now()}`;
}

function now(): bigint {
  return BigInt(Date.now()) * 1_000_000n;
}

/** A copy of a machine that was parked becomes a sandbox of its own, by this host name. */
export function wakeWords(token: string, name: string): string {
  return `wake ${openWords(token).slice("open ".length)} ${name}`;
}

/**
 * Tells a machine the time, and again where it took long to be heard: by so much its clock is behind.
 * @param tookMs how long it took the last time
 */
export async function tellTime(
  control: Socket,
  signal: AbortSignal,
  tookMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (let took = tookMs, told = 0; took > soonMs && told < maxTimesTold; told++) {
    const token = newToken();
    took = await ask(control, `clock ${token} ${now()}`, token, signal);
  }
}

/** Says one line and waits for the answer to it; resolves with the milliseconds that took. */
export async function ask(
  control: Socket,
  line: string,
  token: string,
  signal: AbortSignal,
): Promise<number> {
  const begun = performance.now();
  let said = "";
  const answer = await reading(
    control,
    signal,
    (bytes) => {
      said += bytes.toString("latin1");
      const found = said
        .split("\n")
        .slice(0, -1)
        .find((word) => word.split(" ")[1] === token);
      if (found === undefined && said.length > maxLineBytes) throw lost("the machine says too much");
      return found;
      // The newline in front ends half a line of somebody who was cut off.
    },
    () => control.write(`\n${line}\n`),
  );
  if (!answer.startsWith("ok ")) {
    throw lost(`the machine is not ready: ${answer.replaceAll(token, "").slice(0, 200)}`);
  }
  return performance.now() - begun;
}

/** Hands what a socket reads to `take` until that gives something. */
export function reading<T>(
  socket: Socket,
  signal: AbortSignal,
  take: (bytes: Buffer) => T | undefined,
  begin?: () => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onData = (bytes: Buffer) => {
    try {
      const taken = take(bytes);
      if (taken === undefined) return;
      finish();
      resolve(taken);
    } catch (error) {
      fail(error);
    }
  };
  const fail = (error: unknown) => {
    finish();
    reject(error);
  };
  const onEnd = () => fail(lost("the machine closed the port"));
  const onAbort = () => fail(lost("the machine does not answer"));
  const finish = () => {
    socket.off("data", onData).off("error", fail).off("close", onEnd);
    signal.removeEventListener("abort", onAbort);
  };
  socket.on("data", onData).once("error", fail).once("close", onEnd);
  signal.addEventListener("abort", onAbort, { once: true });
  begin?.();
  return promise;
}

export function lost(message: string): CaissonError {
  return new CaissonError("GUEST_LOST", message);
}
