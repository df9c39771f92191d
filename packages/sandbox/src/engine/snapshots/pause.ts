import { CaissonError, SandboxState } from "@caisson/contract";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";

const SIGSTOP = 19;
const SIGCONT = 18;

/**
 * Stops every command. The guest itself goes on, so that its heartbeat does; nobody inside is left who could wake a
 * stopped process.
 */
export async function pauseBox(context: EngineContext, box: Box, actor: string): Promise<void> {
  mustBeReady(box);
  if (box.record.paused) return;
  box.record.paused = true;
  try {
    await signalAll(box, SIGSTOP);
  } catch (error) {
    box.record.paused = false;
    await signalAll(box, SIGCONT).catch(() => {});
    throw error;
  }
  await context.commit([{ type: "sandbox.paused", actor, sandboxId: box.id }], [box.put()]);
}

export async function resumeBox(context: EngineContext, box: Box, actor: string): Promise<void> {
  mustBeReady(box);
  if (!box.record.paused) return;
  await signalAll(box, SIGCONT);
  box.record.paused = false;
  await context.commit([{ type: "sandbox.resumed", actor, sandboxId: box.id }], [box.put()]);
}

/** Runs something while all commands hold still, and lets them go on if they did before. */
export async function whileStill<T>(box: Box, act: () => Promise<T>): Promise<T> {
  mustBeReady(box);
  if (box.record.paused) return await act();
  box.record.paused = true;
  try {
    await signalAll(box, SIGSTOP);
    return await act();
  } finally {
    await signalAll(box, SIGCONT).catch(() => {});
    box.record.paused = false;
  }
}

/** Twice, because a process may have been forking when the first signal went round. */
async function signalAll(box: Box, signal: number): Promise<void> {
  const guest = box.livingGuest();
  for (let round = 0; round < 2; round++) {
    for (const proc of box.running()) {
      await guest.signal(proc.record.stream, signal, true).catch((error) => {
        if (CaissonError.from(error).code !== "PROCESS_ENDED") throw error;
      });
    }
  }
}

function mustBeReady(box: Box): void {
  if (box.ending || box.record.state !== SandboxState.READY) throw box.notReady();
}
