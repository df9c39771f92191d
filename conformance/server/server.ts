// What cases do with the server under test.
import type { IncomingMessage } from "node:http";
import { type Address, type Answer, collect, type Json, open, type Sent } from "./http.ts";
import { expect, same, Unmet } from "./suite.ts";

export interface SentEvent {
  id: string;
  event: string;
  data: Json;
}

export class Server {
  readonly address: Address;
  readonly #boxes: string[] = [];
  #shared: Promise<string> | undefined;

  constructor(address: Address) {
    this.address = address;
  }

  /** Any answer. */
  async send(path: string, sent: Sent = {}): Promise<Answer> {
    return collect(await open(this.address, path, sent));
  }

  /** A JSON answer that must be a success. */
  async call(path: string, sent: Sent = {}): Promise<Json> {
    const answer = await this.send(path, sent);
    if (answer.status !== 200) throw new Unmet(`${sent.method ?? ""} ${path}: ${answer.bytes.toString()}`);
    return answer.json;
  }

  /** An answer that must be this error. */
  async refuses(code: string, path: string, sent: Sent = {}): Promise<void> {
    const { json, status } = await this.send(path, sent);
    same(json?.error?.code ?? status, code, path.slice(0, 100));
  }

  /** The events of a stream, until it ends or `until` says so. */
  async events(
    path: string,
    sent: Sent = {},
    until: (event: SentEvent) => boolean = () => false,
  ): Promise<SentEvent[]> {
    const response = await open(this.address, path, sent);
    if (response.statusCode !== 200) throw new Unmet(`${path}: ${(await collect(response)).bytes}`);
    same(response.headers["content-type"], "text/event-stream", "a stream's content type");
    const events: SentEvent[] = [];
    for await (const event of parse(response)) {
      events.push(event);
      if (until(event)) break;
    }
    response.destroy();
    return events;
  }

  /** A fresh sandbox; ended when the suite is over. */
  async box(spec: object = {}): Promise<string> {
    const { sandbox } = await this.call("/v1/sandboxes", { body: { spec } });
    this.#boxes.push(sandbox.id);
    return sandbox.id;
  }

  /** One sandbox for all cases that leave nothing behind which another could meet. */
  shared(): Promise<string> {
    this.#shared ??= this.box();
    return this.#shared;
  }

  /** Runs a command to its end. */
  exec(box: string, argv: string[], more: object = {}, key = ""): Promise<Json> {
    const body = { command: { argv, ...more }, ...(key && { idempotency_key: key }) };
    return this.call(`/v1/sandboxes/${box}:exec`, { body });
  }

  sh(box: string, script: string, more: object = {}): Promise<Json> {
    return this.exec(box, ["sh", "-c", script], more);
  }

  async close(): Promise<void> {
    for (const box of this.#boxes) {
      await this.send(`/v1/sandboxes/${box}?forget=true`, { method: "DELETE" }).catch(() => {});
    }
  }
}

/** The bytes of a field that is text or base64. */
export function bytesOf(chunk: Json): Buffer {
  if (chunk === undefined) return Buffer.alloc(0);
  expect("text" in chunk !== "bytes" in chunk, "output has either text or bytes");
  return "text" in chunk ? Buffer.from(chunk.text) : Buffer.from(chunk.bytes, "base64");
}

async function* parse(response: IncomingMessage): AsyncGenerator<SentEvent> {
  let text = "";
  response.setEncoding("utf8");
  for await (const part of response) {
    text += part;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const fields = new Map(block.split("\n").map((line) => line.split(/: ?(.*)/s) as [string, string]));
      const data = fields.get("data");
      // A comment keeps the stream alive.
      if (data === undefined) continue;
      yield { id: fields.get("id") ?? "", event: fields.get("event") ?? "", data: JSON.parse(data) };
    }
  }
}
