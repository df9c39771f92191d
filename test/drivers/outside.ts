// What sandboxes of every driver may reach in tests: a name server, a web server on two ports of an address that nobody else uses, and a
// TLS host that gets a secret.
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNameServer } from "../../packages/sandbox/src/egress/testing/name-server.ts";
import { startHost } from "../../packages/sandbox/src/secrets/testing/host.ts";

export async function openOutside() {
  const digits = () => 1 + Math.floor(Math.random() * 254);
  const address = `127.${digits()}.${digits()}.${digits()}`;
  const names = await startNameServer();
  for (const name of ["allowed.test", "denied.test"]) names.set(name, [address]);
  names.set("secret.test", ["127.0.0.1"]);
  const requests: string[] = [];
  const serve = async (port: number): Promise<Server> => {
    const server = createServer((message, response) => {
      requests.push(`${message.headers.host}${message.url}`);
      response.end("reached\n");
    });
    server.listen(port, address);
    await once(server, "listening");
    return server;
  };
  const web = await serve(0);
  // One of the ports that are caught where the kernel cannot redirect.
  const well = process.getuid!() === 0 ? await serve(80) : undefined;
  const host = await startHost("secret.test");
  const dir = mkdtempSync(join(tmpdir(), "caisson-outside-"));
  chmodSync(dir, 0o755);
  // Also where the suite does not get as far as to close it.
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  const ca = join(dir, "ca.pem");
  writeFileSync(ca, host.certificate);
  return {
    address,
    names,
    requests,
    heard: host.heard,
    port: (web.address() as AddressInfo).port,
    wellKnownPort: well ? 80 : undefined,
    secretPort: host.port,
    env: { CAISSON_NETWORK_DNS_SERVERS: names.address, CAISSON_NETWORK_EXTRA_CA: ca },
    close() {
      for (const server of [web, well]) server?.close();
      host[Symbol.dispose]();
      names.close();
    },
  };
}
