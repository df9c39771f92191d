import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { Authority } from "../authority.ts";
import { listening } from "./listening.ts";

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
  return {
    ...(await listening(server)),
    heard,
    server,
    certificate: record.certificate,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
