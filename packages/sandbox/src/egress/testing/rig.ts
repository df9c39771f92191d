// A door with a real name server and in-memory connections, as the link would bring them.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import type { NewEvent } from "@caisson/store";
import { type DoorParts, EgressDoor } from "../door.ts";
import { defaultLimits, type EgressLimits } from "../limits.ts";
import { Policy, type PolicyInit } from "../policy.ts";
import { NameResolver } from "../resolver.ts";
import { type NameServer, startNameServer } from "./name-server.ts";

export interface Rig extends AsyncDisposable {
  door: EgressDoor;
  names: NameServer;
  events: NewEvent[];
  /** What a program inside holds. */
  connect(kind: "proxy"): Duplex;
  connect(kind: "transparent", name: string, port: number): Duplex;
  /** Events of a type, by their data. */
  told(type: string): Record<string, unknown>[];
  policy(init: Partial<PolicyInit>): Policy;
}

export async function makeRig(
  init: Partial<PolicyInit>,
  parts: Partial<Omit<DoorParts, "policy" | "limits">> & { limits?: Partial<EgressLimits> } = {},
): Promise<Rig> {
  const names = await startNameServer();
  const events: NewEvent[] = [];
  const policy = (some: Partial<PolicyInit>) => new Policy({ mode: "allow", allow: [], deny: [], ...some });
  const door = new EgressDoor({
    sandboxId: "sb_test",
    resolver: new NameResolver({ servers: [names.address], hostsFile: "/nonexistent" }),
    keep: (more) => void events.push(...more),
    ...parts,
    policy: policy(init),
    limits: { ...defaultLimits, ...parts.limits },
  });
  return {
    door,
    names,
    events,
    policy,
    connect(kind: "proxy" | "transparent", name: string = "", port: number = 0) {
      const [inside, outside] = duplexPair();
      inside.on("error", () => {});
      // The link resets the other end; a pair in memory does not.
      outside.once("close", () => {
        if (!outside.writableFinished) inside.destroy();
      });
      inside.once("close", () => {
        if (!inside.writableFinished) outside.destroy();
      });
      door.handle({ kind, name, port, stream: outside });
      return inside;
    },
    told: (type) => events.filter((event) => event.type === type).map((event) => event.data ?? {}),
    async [Symbol.asyncDispose]() {
      door.close();
      names.close();
    },
  };
}

export interface Served {
  port: number;
  server: Server;
  connections: Socket[];
  close(): void;
}

/** A TCP server on loopback. */
export async function listen(onConnection: (socket: Socket) => void, host = "127.0.0.1"): Promise<Served> {
  const connections: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    connections.push(socket);
    onConnection(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    server,
    connections,
    close() {
      server.close();
      for (const socket of connections) socket.destroy();
    },
  };
}

/** Everything until the other side ends or breaks. */
export async function readAll(stream: Duplex): Promise<string> {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.resume();
  await new Promise<void>((resolve) => {
    stream.once("end", resolve);
    stream.once("close", resolve);
    stream.once("error", () => resolve());
    if (stream.destroyed || stream.readableEnded) resolve();
  });
  return Buffer.concat(chunks).toString("latin1");
}

/** Until a text that matches has come. */
export function readUntil(stream: Duplex, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const look = (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (!pattern.test(text)) return;
      stream.off("data", look);
      stream.pause();
      resolve(text);
    };
    stream.on("data", look);
    stream.once("close", () => reject(new Error(`closed after ${JSON.stringify(text)}`)));
    stream.once("end", () => reject(new Error(`ended after ${JSON.stringify(text)}`)));
    stream.resume();
  });
}
