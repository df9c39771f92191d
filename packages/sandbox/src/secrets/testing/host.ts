import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Authority } from "../authority.ts";

/** What a host was told. */
export interface Heard {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/** A real TLS server that echoes what it hears, with a certificate of an authority of its own. */
export async function startHost(name: string) {
  const record = Authority.make("a test's own authority");
  const context = new Authority(record).contextFor(name);
  const heard: Heard[] = [];
  const server = createServer(
    { SNICallback: (_name, done) => done(null, context) },
    async (message, response) => {
      // Whoever is cut off in the middle has said nothing.
      const whole = await Array.fromAsync(message as AsyncIterable<Buffer>).catch(() => undefined);
      if (!whole) return;
      const body = Buffer.concat(whole).toString();
      heard.push({ method: message.method!, url: message.url!, headers: message.headers, body });
      // Git shows its credentials only to who asks for them.
      if (message.url!.includes(".git") && !message.headers.authorization)
        response.writeHead(401, { "WWW-Authenticate": "Basic realm=test" });
      else response.setHeader("X-Echo", message.headers.authorization ?? "");
      response.end(JSON.stringify({ headers: message.headers, body }));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    heard,
    server,
    certificate: record.certificate,
    dial: () =>
      new Promise<Socket>((resolve, reject) => {
        const socket = connect(port, "127.0.0.1", () => resolve(socket));
        socket.once("error", reject);
      }),
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
