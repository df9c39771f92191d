// A scripted model behind the three protocols that agents speak: Anthropic's Messages, OpenAI's Responses and Gemini's
// streamGenerateContent, each as server-sent events. It answers every request with the next step of its script.
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Certificate } from "../../../support/network/certificate.ts";
import { anthropic } from "./protocols/anthropic.ts";
import { gemini } from "./protocols/gemini.ts";
import { openai } from "./protocols/openai.ts";
import type { Body, Protocol } from "./protocols/protocol.ts";

const protocols: readonly Protocol[] = [anthropic, openai, gemini];

/** A request that reached the provider. */
export interface Heard {
  path: string;
  headers: IncomingMessage["headers"];
  text: string;
  body: Body;
}

export interface Model extends Disposable {
  port: number;
  heard: Heard[];
  /** Until it is called, the last answer stops after its first word. */
  goOn(): void;
}

/** Makes the agent run these shell commands one after the other, then says `last`, a word at a time. */
export async function startModel(
  certificate: Certificate,
  commands: readonly string[],
  last: string,
): Promise<Model> {
  const heard: Heard[] = [];
  const { promise: going, resolve: goOn } = Promise.withResolvers<void>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? "";
    const protocol = protocols.find((one) => one.paths.test(path));
    const text = (await Array.fromAsync(request)).map(String).join("");
    if (!protocol || request.method !== "POST") {
      response.writeHead(request.method === "HEAD" ? 200 : 404).end();
      return;
    }
    const body = JSON.parse(text) as Body;
    heard.push({ path, headers: request.headers, text, body });
    if (!protocol.wantsStream(path, body)) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(protocol.whole("ok")));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const isConversation = protocol.hasTools(body);
    const command = isConversation ? commands[protocol.results(body)] : undefined;
    const events = command === undefined ? protocol.say(last) : protocol.call(command, body);
    for (const [index, event] of events.entries()) {
      response.write(event);
      if (isConversation && command === undefined && index === protocol.firstWord) await going;
    }
    response.end();
  };
  const server = createServer(certificate, (request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    heard,
    goOn,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
