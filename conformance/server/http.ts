// One HTTP request to the server under test, on TCP or on a Unix socket. Nothing here knows any client of ours.
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { rules } from "./rules.ts";
import { expect } from "./suite.ts";

export interface Address {
  /** Such as `http://127.0.0.1:7676`; undefined on a Unix socket. */
  url: string | undefined;
  socket: string | undefined;
  /** Sent as `Authorization: Bearer`. */
  key: string | undefined;
}

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  /** Bytes are sent as they are, anything else as JSON. */
  body?: unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: what a server answers has no type until a case has looked at it.
export type Json = any;

export interface Answer {
  status: number;
  headers: Record<string, string>;
  bytes: Buffer;
  /** The body as JSON; undefined where it is none. */
  json: Json;
}

const agent = new Agent({ keepAlive: true, maxSockets: 16 });

export function open(address: Address, path: string, sent: Sent = {}): Promise<IncomingMessage> {
  const { body, headers = {} } = sent;
  const raw = body === undefined || body instanceof Uint8Array || typeof body === "string";
  const bytes = raw ? (body as string | Uint8Array | undefined) : JSON.stringify(body);
  const to = address.socket ? { socketPath: address.socket } : urlParts(address.url!);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        ...to,
        agent,
        path,
        method: sent.method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          ...(address.key ? { authorization: `Bearer ${address.key}` } : {}),
          ...(raw ? {} : { "content-type": "application/json" }),
          ...(bytes === undefined ? {} : { "content-length": String(Buffer.byteLength(bytes)) }),
          ...headers,
        },
      },
      resolve,
    );
    request.on("error", reject);
    request.end(bytes);
  });
}

/** Sends headers only, and says what the server answers to them. */
export function announce(
  address: Address,
  path: string,
  sent: Required<Omit<Sent, "body">>,
): Promise<Answer> {
  const to = address.socket ? { socketPath: address.socket } : urlParts(address.url!);
  return new Promise((resolve, reject) => {
    const authorization = address.key ? { authorization: `Bearer ${address.key}` } : {};
    const request = httpRequest(
      { ...to, agent: false, path, method: sent.method, headers: { ...authorization, ...sent.headers } },
      (response) => {
        collect(response).then(resolve, reject);
        response.once("end", () => request.destroy());
      },
    );
    request.on("error", reject);
    request.flushHeaders();
  });
}

export async function collect(response: IncomingMessage): Promise<Answer> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  const bytes = Buffer.concat(parts);
  const answer: Answer = {
    status: response.statusCode ?? 0,
    headers: response.headers as Record<string, string>,
    bytes,
    json: isJson(response) ? JSON.parse(bytes.toString()) : undefined,
  };
  if (answer.status >= 400) checkError(answer);
  return answer;
}

/** Every error that any case meets is of the table, in the form that the rules give it. */
function checkError({ status, bytes, json, headers }: Answer): void {
  const { code, status: name, message, next_step, request_id } = json?.error ?? {};
  expect(
    Object.hasOwn(rules.errors, code ?? ""),
    `an error of the table, not ${bytes.toString().slice(0, 100)}`,
  );
  const row = rules.errors[code]!;
  expect(row.http === status, `${code} has HTTP status ${row.http}, not ${status}`);
  expect(row.status === name, `${code} has status ${row.status}, not ${name}`);
  expect(next_step === row.next, `${code} says its next step`);
  expect(typeof message === "string" && message !== "", "an error has a message");
  expect(request_id !== "" && request_id === headers["x-request-id"], "an error names its request");
  expect(
    bytes.length <= rules.sizes.error_body_bytes!,
    `an error has at most ${rules.sizes.error_body_bytes} bytes`,
  );
  expect(!/\n\s+at |node_modules|\.ts:\d/.test(bytes.toString()), "an error has no stack trace");
}

function isJson(response: IncomingMessage): boolean {
  return (response.headers["content-type"] ?? "").startsWith("application/json");
}

function urlParts(url: string): { host: string; port: string } {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port || "80" };
}
