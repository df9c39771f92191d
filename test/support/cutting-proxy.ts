// A Unix socket in front of another that cuts every connection after some random number of bytes.
import { rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy extends AsyncDisposable {
  path: string;
  cuts: number;
  /** False lets connections live. */
  cutting: boolean;
}

/** Randomness that a failed test can repeat. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/**
 * @param bytes the most that a connection carries, in both directions together
 */
export async function cuttingProxy(
  target: string,
  options: { bytes: number; random: (below: number) => number },
): Promise<CuttingProxy> {
  const path = `${target}.proxy`;
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target);
    let left = 1 + options.random(options.bytes);
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.on("data", (data) => {
        const part = proxy.cutting ? data.subarray(0, left) : data;
        left -= part.length;
        if (left > 0 || !proxy.cutting) to.write(part);
        else {
          proxy.cuts++;
          // What was carried so far arrives, in the middle of whatever it was.
          to.write(part, end);
        }
      });
      from.on("end", () => to.end());
      from.on("error", end);
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const proxy: CuttingProxy = {
    path,
    cuts: 0,
    cutting: true,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(path, { force: true });
    },
  };
  return proxy;
}
