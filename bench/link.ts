// What the link costs above a bare socket: a process's output, and a call.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type OnReadOpts } from "node:net";
import { join } from "node:path";
import { openSharedSocket } from "../packages/sandbox/src/link/frame/shared-read.ts";
import type { OutputSink } from "../packages/sandbox/src/link/guest.ts";
import { openGuest } from "../packages/sandbox/src/link/open.ts";
import { interleave, median } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const mebibytes = Number(process.env.CAISSON_BENCH_MIB ?? 1024);
const bytes = mebibytes * 1024 * 1024;

const script = join(import.meta.dirname, "support/link-peer.ts");
const peer = spawn(process.execPath, [script, String(bytes)], { stdio: ["pipe", "pipe", "inherit"] });
const paths: { guest: string; raw: string; echo: string } = JSON.parse(
  String((await once(peer.stdout, "data"))[0]),
);

async function open(path: string, options: { onread?: OnReadOpts } = {}) {
  const socket = connect({ path, ...options });
  await once(socket, "connect");
  return socket;
}

/** Reads and drops, as a sink that is never the bottleneck does. */
async function readRaw(): Promise<void> {
  const socket = await open(paths.raw);
  let read = 0;
  socket.on("data", (chunk) => {
    read += chunk.length;
  });
  await once(socket, "end");
  if (read !== bytes) throw new Error(`read ${read} of ${bytes} bytes`);
}

const guest = await openGuest(() => openSharedSocket((onread) => open(paths.guest, { onread })));
const stored = Promise.resolve();

async function readOutput(): Promise<void> {
  const stream = guest.nextStream();
  await new Promise<void>((resolve, reject) => {
    const sink: OutputSink & { position: number } = {
      position: 0,
      write(_tag, piece) {
        this.position += piece.length;
        return stored;
      },
      exited({ position }) {
        if (position === BigInt(bytes)) resolve();
        else reject(new Error(`${position} of ${bytes} bytes`));
      },
    };
    guest.start({ stream, argv: ["pattern", String(bytes), String(2 ** 40)] }, sink).catch(reject);
  });
  guest.forget(stream);
}

const echo = await open(paths.echo);
async function echoByte(): Promise<void> {
  echo.write("x");
  await once(echo, "data");
}

const report = new Report();

/** How much larger the process gets at most while it reads one output. */
async function growth(): Promise<number> {
  const before = process.memoryUsage().rss;
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 2);
  await readOutput();
  clearInterval(watch);
  return peak - before;
}

const grown = await growth();
const throughput = await interleave({ link: readOutput, raw: readRaw }, 5, { warmup: 1 });
const speed = (times: number[]) => bytes / 1e6 / (median(times) / 1000);
report.add({
  what: `output of ${mebibytes} MiB through the link`,
  value: speed(throughput.link),
  unit: "MB/s",
  versus: "a raw socket read in Node",
  ratio: speed(throughput.link) / speed(throughput.raw),
  want: ">=",
  target: 0.3,
});
report.add({
  what: "the same, as a rate",
  value: speed(throughput.link),
  unit: "MB/s",
  want: ">=",
  target: 300,
});
report.add({
  what: "growth of the reading process",
  value: grown / 1e6,
  unit: "MB",
  want: "<=",
  target: 64,
});

const calls = await interleave({ link: async () => void (await guest.ping()), raw: echoByte }, 2000, {
  warmup: 200,
});
report.add({
  what: "an empty call over the link",
  value: median(calls.link),
  unit: "ms",
  versus: "one byte echoed by a socket",
  ratio: median(calls.link) / median(calls.raw),
  want: "<=",
  target: 3,
});
report.print();
guest.close();
echo.destroy();
peer.stdin.end();
