import type { Flow } from "./flow.ts";

const lookEveryMs = 200;

/** Counts what passes over a connection whose bytes somebody else relays. */
export function meter(flow: Flow): void {
  const { socket } = flow;
  let [received, sent] = [0, 0];
  const look = () => {
    const now = { received: socket.bytesRead, sent: socket.bytesWritten };
    if (now.received > received) flow.count("received", now.received - received);
    if (now.sent > sent) flow.count("sent", now.sent - sent);
    [received, sent] = [now.received, now.sent];
  };
  const timer = setInterval(look, lookEveryMs).unref();
  // Before whoever tells of its end.
  socket.prependOnceListener("close", () => {
    clearInterval(timer);
    look();
  });
}
