import { CaissonError } from "@caisson/contract";
import { isGone, type Response } from "../http/types.ts";

/** A reader that takes nothing for so long is cut off; it can resume from the last number it has. */
const defaultStallMs = 30_000;

/** Writes a part of an answer and waits while the reader does not keep up: no more than the socket's buffer is held. */
export async function writePart(
  response: Response,
  part: string | Uint8Array,
  stallMs = defaultStallMs,
): Promise<void> {
  if (isGone(response)) throw gone();
  if (response.write(part)) return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      response.destroy();
      settle();
    }, stallMs);
    const settle = () => {
      clearTimeout(timer);
      response.off("drain", settle);
      response.off("close", settle);
      if (isGone(response)) reject(gone());
      else resolve();
    };
    response.once("drain", settle);
    response.once("close", settle);
  });
}

function gone(): CaissonError {
  return new CaissonError("CANCELLED", "the reader has gone");
}
