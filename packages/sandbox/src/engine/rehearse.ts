import type { Guest } from "../link/guest.ts";

const timeoutMs = 10_000;

/**
 * Runs a shell that does nothing in a closed sandbox that nobody has yet. Where the kernel is a program of its own, the first command would
 * fetch what all later ones find: the loader and the C library, and processes to play others in.
 */
export async function rehearse(guest: Guest): Promise<void> {
  const stream = guest.nextStream();
  const { promise: exited, resolve } = Promise.withResolvers<void>();
  const sink = {
    position: 0,
    async write(_tag: 1 | 2, { length }: Uint8Array) {
      this.position += length;
    },
    exited: () => resolve(),
  };
  const argv = ["/bin/sh", "-c", ":"];
  try {
    await guest.start({ stream, argv, timeoutMs: BigInt(timeoutMs), rehearsal: true }, sink);
  } catch {
    // A host without such a shell; a sandbox that is not rehearsed is as good.
    return;
  }
  await Promise.race([exited, guest.lost]);
  guest.forget(stream);
}
