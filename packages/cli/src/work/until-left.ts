import { CaissonError } from "@caisson/client";
import type { Io } from "../io/io.ts";

/** Watches something until it ends or the caller leaves, by signal or for good. Leaving is no error. */
export async function untilLeft(io: Io, watch: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const leaving = new AbortController();
  let code = 0;
  const leave = (exit: number) => {
    code = exit;
    leaving.abort();
  };
  const undo = io.onSignal((signal) => {
    if (signal === "SIGINT") leave(130);
    else if (signal === "SIGTERM") leave(143);
  });
  const vanished = () => leave(129);
  io.gone.addEventListener("abort", vanished, { once: true });
  try {
    await watch(leaving.signal);
    return code;
  } catch (thrown) {
    if (leaving.signal.aborted && CaissonError.from(thrown).code === "CANCELLED") return code;
    throw thrown;
  } finally {
    undo();
    io.gone.removeEventListener("abort", vanished);
  }
}
