import type { EgressDoor } from "../door.ts";
import type { Admitted, Client, Flow } from "../flow.ts";
import { Refusal } from "../refusal.ts";
import { over, receive } from "../relay.ts";
import { answerRaw, toldBy } from "./answer.ts";
import { RequestWatch } from "./request-watch.ts";

/**
 * Relays plain HTTP in a tunnel, looking at every request on its way. A connection that does not begin in the plainest form
 * goes to Node's own parser; one that leaves that form later is cut.
 */
export function relayWatched(door: EgressDoor, client: Client, target: Admitted, flow: Flow): Promise<void> {
  const { stream } = client;
  const { socket } = flow;
  const watch = new RequestWatch(target.host.name, target.port);
  let begun = false;
  const begin = () => {
    begun = true;
    receive(stream, flow);
    return over(stream, socket);
  };
  const resume = () => stream.resume();
  return new Promise((resolve, reject) => {
    const leave = () => {
      watch.close();
      stream.off("data", look);
      stream.off("end", end);
    };
    const look = (chunk: Buffer) => {
      const { pass, stop } = watch.feed(chunk);
      if (stop === "odd" && !begun && pass.length === 0) {
        leave();
        stream.pause();
        if (watch.held.length > 0) stream.unshift(watch.held);
        door.serveHttp(client, target, flow);
        resolve();
        return;
      }
      if (!begun) begin().then(resolve, reject);
      if (pass.length > 0) {
        flow.count("sent", pass.length);
        if (socket.writable && !socket.write(pass)) {
          stream.pause();
          socket.once("drain", resume);
        }
      }
      if (stop === undefined) return;
      leave();
      refuse(
        stop === "odd"
          ? { rule: "malformed request", reason: "the request is not of HTTP's plainest form" }
          : stop,
      );
    };
    const refuse = ({ rule, reason }: { rule: string; reason: string }) => {
      const refusal = Refusal.because(rule, reason);
      door.decisions.refused({ name: target.host.name, port: target.port, via: target.via }, refusal);
      flow.cut ||= reason;
      // What the server still says belongs to nobody; it goes when the program has its answer.
      for (const event of ["data", "end"]) socket.removeAllListeners(event);
      socket.resume();
      answerRaw(stream, toldBy(refusal, door.sandboxId));
      stream.once("close", () => socket.destroy());
    };
    const end = () => {
      // Half a request goes nowhere.
      if (!begun) begin().then(resolve, reject);
      socket.end();
    };
    stream.on("data", look);
    stream.once("end", end);
    stream.resume();
    stream.once("close", () => {
      watch.close();
      resolve();
    });
  });
}
