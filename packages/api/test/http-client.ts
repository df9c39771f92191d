// Requests that no well-behaved client would send.

import { request as httpRequest } from "node:http";
import { connect } from "node:net";

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  code: string;
}

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** One request by Node's own client, which lets headers such as Host be anything. */
export function send(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: Sent = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: "127.0.0.1", port, path, method, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text,
            code: codeOf(text),
          });
        });
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

function codeOf(text: string): string {
  try {
    return (JSON.parse(text) as { error?: { code?: string } }).error?.code ?? "";
  } catch {
    return "";
  }
}

/** Raw bytes; resolves to everything that came back until the server closed. */
export function sendRaw(port: number, bytes: string | Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(chunks)));
    socket.write(bytes);
  });
}
