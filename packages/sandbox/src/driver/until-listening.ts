import { CaissonError } from "@caisson/contract/errors";
import type { Launched } from "./driver.ts";

/** How long a guest may take to make its door. */
const doorMs = 30_000;

/** A guest that makes its socket itself does so a moment after its surroundings have started. */
export async function untilListening(launched: Launched, what: string): Promise<void> {
  let ended: string | undefined;
  void launched.ended.then((words) => {
    ended = words;
  });
  const deadline = performance.now() + doorMs;
  while (true) {
    try {
      const link = await launched.connect();
      link.destroy();
      return;
    } catch (cause) {
      if (ended !== undefined) throw new CaissonError("SANDBOX_FAILED", `${what} did not start: ${ended}`);
      if (performance.now() > deadline) {
        await launched.kill().catch(() => {});
        throw new CaissonError("SANDBOX_FAILED", `${what}: its guest did not listen in time`, { cause });
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
