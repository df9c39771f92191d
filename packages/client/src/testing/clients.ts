import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInProcessTransport } from "@caisson/contract/in-process";
import type { Client } from "../client.ts";
import { connect } from "../connect.ts";
import { FakeDaemon } from "./services.ts";
import { TtrpcPeer } from "./ttrpc-peer.ts";

/** A client whose calls go straight to a daemon in memory. */
export async function inProcessClient(
  daemon = new FakeDaemon(),
): Promise<{ client: Client; daemon: FakeDaemon }> {
  let id = 0;
  const transport = createInProcessTransport(daemon.services(), {
    actor: "uid:0",
    nextRequestId: () => `r${++id}`,
  });
  return { client: await connect({ transport, retry: false }), daemon };
}

export interface SocketClient extends AsyncDisposable {
  client: Client;
  daemon: FakeDaemon;
  peer: TtrpcPeer;
}

/** A client and a daemon in memory with a real socket between them. */
export async function socketClient(daemon = new FakeDaemon()): Promise<SocketClient> {
  const dir = mkdtempSync(join(tmpdir(), "caisson-client-"));
  const peer = await new TtrpcPeer(join(dir, "daemon.sock"), daemon.services()).listen();
  const client = await connect({ socket: peer.path });
  return {
    client,
    daemon,
    peer,
    async [Symbol.asyncDispose]() {
      await client.close();
      await peer.close();
      rmSync(dir, { recursive: true });
    },
  };
}
