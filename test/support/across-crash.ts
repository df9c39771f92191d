// A daemon that is killed while a command runs, and the one after it.
import { type Box, type Client, connect } from "@caisson/client";
import type { TestDaemon } from "./daemon.ts";

/** Kills the daemon, starts another, and gives what the command has come to there. */
export async function acrossCrash(
  daemon: TestDaemon,
  { boxId, runId }: { boxId: string; runId: string },
  look: (after: { client: Client; box: Box; stdout: string; code: number }) => Promise<void>,
): Promise<void> {
  await daemon.crash();
  await daemon.restart();
  await using client = await connect({ socket: daemon.socket });
  const box = await client.sandboxes.get(boxId);
  const { stdout, code } = await box.process(runId).result();
  await look({ client, box, stdout: stdout.text, code });
  await box.delete();
}

/** A command that counts slowly, and what it prints. */
export function counting(count: number, seconds: number): { argv: string[]; output: string } {
  return {
    argv: ["sh", "-c", `for i in $(seq ${count}); do echo $i; sleep ${seconds}; done`],
    output: Array.from({ length: count }, (_, index) => `${index + 1}\n`).join(""),
  };
}
