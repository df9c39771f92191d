import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, newToken, openWords, tellTime } from "./control.ts";

/** A machine that takes so long for each of its answers; the last one for all that follow. */
async function machine(t: { after(act: () => void): void }, ...delays: number[]) {
  const heard: string[] = [];
  const server = createServer((port) => {
    port.setEncoding("utf8").on("data", async (text: string) => {
      for (const line of text.split("\n").filter(Boolean)) {
        heard.push(line);
        await sleep(delays.length > 1 ? delays.shift() : delays[0]);
        port.write(`ok ${line.split(" ")[1]}\n`);
      }
    });
  });
  const path = join(tmpdir(), `caisson-control-${process.pid}-${Math.random()}`);
  await once(server.listen(path), "listening");
  const port: Socket = connect(path);
  await once(port, "connect");
  t.after(() => {
    port.destroy();
    server.close();
  });
  return { port, heard };
}

const signal = AbortSignal.timeout(60_000);

test("a machine that was slow to hear the time is told again", async (t) => {
  const { port, heard } = await machine(t, 200, 200, 0);
  const token = newToken();
  const tookMs = await ask(port, openWords(token), token, signal);
  assert.ok(tookMs >= 150, String(tookMs));
  const before = BigInt(Date.now()) * 1_000_000n;
  await tellTime(port, signal, tookMs);
  const words = heard.slice(1).map((line) => /^clock [0-9a-f]{64} (\d{19})$/.exec(line)?.[1]);
  assert.ok(words.length >= 2 && words.length <= 3, String(words));
  for (const time of words) assert.ok(BigInt(time!) >= before);
});

test("one that heard it at once is not, and one that is always slow is left alone", async (t) => {
  const quick = await machine(t, 0);
  await tellTime(quick.port, signal, 1);
  assert.deepEqual(quick.heard, []);
  const slow = await machine(t, 100);
  await tellTime(slow.port, signal);
  assert.equal(slow.heard.length, 3);
});
