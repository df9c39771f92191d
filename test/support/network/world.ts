// A small internet on loopback: a name server, a web server and a TLS server at one address that rules may name, and on the
// host's own loopback servers that nobody may reach.
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import {
  type NameServer,
  startNameServer,
} from "../../../packages/sandbox/src/egress/testing/name-server.ts";
import { type Certificate, makeCertificate } from "./certificate.ts";

/** Stands for the internet: the one loopback address that tests name in their rules. */
export const outside = "127.0.1.1";

export interface World extends AsyncDisposable {
  names: NameServer;
  /** Requests that came, as `GET /path host`. */
  requests: string[];
  httpPort: number;
  tlsPort: number;
  certificate: Certificate;
  /** On 127.0.0.1 and ::1: who connects here has got out. */
  canary: { port: number; connections: number; datagrams: number };
}

export async function makeWorld(hosts: readonly string[]): Promise<World> {
  const names = await startNameServer();
  for (const host of hosts) names.set(host, [outside]);
  const requests: string[] = [];
  const certificate = makeCertificate(hosts);
  const answer: Parameters<typeof createHttpServer>[1] = (message, response) => {
    requests.push(`${message.method} ${message.url} ${message.headers.host}`);
    const redirect = /^\/redirect\?(.*)$/.exec(message.url ?? "")?.[1];
    if (redirect) response.writeHead(302, { Location: decodeURIComponent(redirect) });
    response.end("reached\n");
  };
  const web = createHttpServer(answer);
  const tls = createHttpsServer(certificate, answer);
  const canary = { port: 0, connections: 0, datagrams: 0 };
  const trap = createTcpServer((socket) => {
    canary.connections++;
    socket.on("error", () => {});
    socket.end("you are out\n");
  });
  await listen(web, outside);
  await listen(tls, outside);
  const udp = await listenOnBoth(trap);
  canary.port = udp.address().port;
  udp.on("message", () => canary.datagrams++);
  return {
    names,
    requests,
    certificate,
    canary,
    httpPort: (web.address() as AddressInfo).port,
    tlsPort: (tls.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      names.close();
      udp.close();
      for (const server of [web, tls]) {
        server.closeAllConnections();
        server.close();
      }
      trap.close();
    },
  };
}

async function listen(server: Server | TcpServer, host: string, port = 0): Promise<void> {
  server.listen(port, host);
  await once(server, "listening");
}

/** A port of loopback that takes connections and datagrams; one that is free for these may be taken for those. */
async function listenOnBoth(server: TcpServer): Promise<Socket> {
  for (;;) {
    const udp = createSocket("udp4").bind(0, "127.0.0.1");
    await once(udp, "listening");
    try {
      await listen(server, "127.0.0.1", udp.address().port);
      return udp;
    } catch (error) {
      udp.close();
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
