// A program that fetches, run inside and outside of sandboxes: `WAY HOST PORT WHAT COUNT AT_ONCE`. WAY is `plain`, a
// connection of its own, or `connect`, through the proxy that HTTP_PROXY names. Prints what it measured as JSON.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const [way, host, port, what, count, atOnce] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
const proxy = new URL(process.env.HTTP_PROXY || process.env.http_proxy || "http://127.0.0.1:1");
const target = `${host}:${port}`;
const credentials = proxy.username
  ? `Proxy-Authorization: Basic ${btoa(`${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`)}\r\n`
  : "";

/** Bytes until a pattern has come; rejects when the connection ends before. */
async function until(socket: Socket, pattern: string): Promise<void> {
  for (let text = ""; !text.includes(pattern); ) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    text += chunk.toString("latin1");
    if (/^HTTP\/1\.1 [345]/.test(text)) throw new Error(text.slice(0, 300));
  }
}

async function open(): Promise<Socket> {
  const socket =
    way === "connect" ? connect(Number(proxy.port), proxy.hostname) : connect(Number(port), host);
  socket.setNoDelay(true);
  await once(socket, "connect");
  if (way === "connect") {
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credentials}\r\n`);
    await until(socket, "\r\n\r\n");
  }
  return socket;
}

async function fetchOn(socket: Socket): Promise<void> {
  socket.write(`GET / HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await until(socket, "{}");
}

const times: number[] = [];

async function timed(work: () => Promise<unknown>): Promise<void> {
  const began = performance.now();
  await work();
  times.push(performance.now() - began);
}

async function fetchNew(): Promise<void> {
  const socket = await open();
  await fetchOn(socket);
  socket.destroy();
}

async function worker(rounds: number): Promise<void> {
  if (what === "new") {
    for (let i = 0; i < rounds; i++) await timed(fetchNew);
    return;
  }
  const socket = await open();
  for (let i = 0; i < 20; i++) await fetchOn(socket);
  for (let i = 0; i < rounds; i++) await timed(() => fetchOn(socket));
  socket.destroy();
}

async function download(): Promise<void> {
  const socket = await open();
  socket.write(`GET /large HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);
  let bytes = 0;
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(socket, "end");
  if (bytes < Number(count)) throw new Error(`only ${bytes} bytes came`);
}

if (what === "new") for (let i = 0; i < 10; i++) await fetchNew();
const began = performance.now();
if (what === "download") await timed(download);
else
  await Promise.all(
    Array.from({ length: Number(atOnce) }, () => worker(Math.ceil(Number(count) / Number(atOnce)))),
  );
const ms = performance.now() - began;
times.sort((a, b) => a - b);
console.log(JSON.stringify({ p50: times[times.length >> 1], perSecond: (times.length / ms) * 1000, ms }));
process.exit();
