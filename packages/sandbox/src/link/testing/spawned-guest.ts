import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";

/** Starts a fake guest as another process. */
export async function spawnGuest(): Promise<{ connect(): Promise<Socket> } & AsyncDisposable> {
  const script = join(import.meta.dirname, "guest-process.ts");
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  const path = String(line).trim();
  return {
    connect: async () => {
      const socket = connect(path);
      await once(socket, "connect");
      return socket;
    },
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, "exit");
      child.stdin.end();
      await exited;
    },
  };
}
