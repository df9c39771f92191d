import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { Failure, Refusal, sentence } from "../refusal.ts";

/** What a program is told by its own protocol. */
export interface Told {
  status: number;
  line: string;
}

export function toldBy(thrown: unknown, sandboxId: string): Told {
  if (thrown instanceof Refusal) return { status: 403, line: sentence(thrown, sandboxId) };
  if (thrown instanceof Failure)
    return { status: thrown.kind === "timeout" ? 504 : 502, line: `caisson: ${thrown.message}` };
  return { status: 502, line: "caisson: the connection failed" };
}

/** Many programs print nothing of a proxy's answer but this phrase. */
function phrase({ status, line }: Told): string {
  const text = line.replace(/[^\x20-\x7e]/g, "?").slice(0, 400);
  return text || (STATUS_CODES[status] ?? "Error");
}

export function answer(response: ServerResponse, told: Told): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(told.status, phrase(told), {
    "Content-Type": "text/plain; charset=utf-8",
    "Proxy-Status": `caisson; error=${told.status === 403 ? "http_request_denied" : "destination_unavailable"}`,
    Connection: "close",
  });
  response.end(`${told.line}\n`);
}

/** The same where there is no response object: a tunnel that does not come about. */
export function answerRaw(stream: Duplex, told: Told): void {
  const body = `${told.line}\n`;
  stream.end(
    `HTTP/1.1 ${told.status} ${phrase(told)}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // What it still sends is of no interest, but has to be taken for the answer to arrive.
  stream.resume();
}
