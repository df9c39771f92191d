// Spawns /bin/true once for every line that it reads, in a process that does nothing else, and answers with the milliseconds.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

function once(): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] });
    child.once("error", reject);
    child.once("close", () => resolve(performance.now() - began));
  });
}

for await (const _ of createInterface({ input: process.stdin })) console.log(await once());
