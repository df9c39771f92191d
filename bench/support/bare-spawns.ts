// Spawns /bin/true COUNT times, AT_ONCE at a time, in a process that does nothing else.
import { spawn } from "node:child_process";

const [count, atOnce] = process.argv.slice(2).map(Number) as [number, number];

function once(): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] });
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}

for (let i = 0; i < 10; i++) await once();
let left = count;
const began = performance.now();
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (left-- > 0) await once();
  }),
);
console.log(JSON.stringify({ perSecond: count / ((performance.now() - began) / 1000) }));
