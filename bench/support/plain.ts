import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, get } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";

/** What bare Node processes do, to compare with. */
export interface Plain {
  /** One byte to another process and back. */
  echo(): Promise<void>;
  /** One request to a bare HTTP server. */
  http(): Promise<void>;
  /** Reads everything that another process writes to a socket; its hash. */
  flood(): Promise<string>;
  close(): void;
}

/** @param bytes how many `flood` reads */
export async function startPlain(bytes: number): Promise<Plain> {
  const script = join(import.meta.dirname, "plain-peer.ts");
  const child = spawn(process.execPath, [script, String(bytes)], { stdio: ["pipe", "pipe", "inherit"] });
  const [printed] = (await once(child.stdout, "data")) as [Buffer];
  const { echo, raw, port } = JSON.parse(printed.toString()) as { echo: string; raw: string; port: number };
  const socket = connect(echo);
  await once(socket, "connect");
  const agent = new Agent({ keepAlive: true });
  return {
    async echo() {
      socket.write("x");
      await once(socket, "data");
    },
    http: () =>
      new Promise((resolve, reject) => {
        get({ port, host: "127.0.0.1", agent }, (response) => {
          response.resume();
          response.on("end", resolve);
        }).on("error", reject);
      }),
    async flood() {
      const hash = createHash("sha256");
      const reading = connect(raw);
      reading.on("data", (data) => hash.update(data));
      await once(reading, "end");
      return hash.digest("hex");
    },
    close() {
      socket.destroy();
      agent.destroy();
      child.stdin.end();
    },
  };
}
