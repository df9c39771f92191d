// The Docker engine's API on its Unix socket. Podman serves the same one.
import { type IncomingMessage, request } from "node:http";
import { CaissonError } from "@caisson/contract/errors";

/** What we are written against, and the oldest that has all of it. */
const newestVersion = [1, 41] as const;
const oldestVersion = [1, 40] as const;
const maxAnswerBytes = 4 * 1024 * 1024;
const patienceMs = 30_000;

export interface EngineCall {
  method: "GET" | "POST" | "DELETE";
  path: string;
  query?: Record<string, string>;
  /** JSON, or bytes of another type. */
  body?: unknown;
  tar?: Uint8Array;
  /** Statuses that are no error, beside success. */
  accept?: readonly number[];
  /** 0: as long as it takes. */
  timeoutMs?: number;
}

export interface Answer {
  status: number;
  body: unknown;
}

/** One engine, by its socket. Connections are made for each call: an engine that was restarted is simply met again. */
export class Engine {
  readonly socket: string;
  #met: Promise<{ version: string; isPodman: boolean }> | undefined;

  constructor(socket: string) {
    this.socket = socket;
  }

  /** Podman serves the same API, with a few differences. */
  async isPodman(): Promise<boolean> {
    this.#met ??= meet(this.socket);
    return (await this.#met).isPodman;
  }

  async call(call: EngineCall): Promise<Answer> {
    this.#met ??= meet(this.socket);
    try {
      const { version } = await this.#met;
      return await send(this.socket, { ...call, path: `/v${version}${call.path}` });
    } catch (error) {
      // The one that answers next may be another.
      if (error instanceof CaissonError && error.code === "UNAVAILABLE") this.#met = undefined;
      throw error;
    }
  }
}

/** Asks who it is, and agrees on a version. */
async function meet(socket: string): Promise<{ version: string; isPodman: boolean }> {
  // Whether anybody is there is said at once; Podman asks the system's packages for its version, which takes seconds on a busy machine.
  await send(socket, { method: "GET", path: "/_ping", timeoutMs: 5000 });
  const { body } = await send(socket, { method: "GET", path: "/version" });
  const { ApiVersion, MinAPIVersion } = (body ?? {}) as { ApiVersion?: unknown; MinAPIVersion?: unknown };
  const [newest, least] = [parse(ApiVersion), parse(MinAPIVersion ?? "1.12")];
  const agreed = isBelow(newest, newestVersion) ? newest : newestVersion;
  if (isBelow(agreed, oldestVersion) || isBelow(agreed, least))
    throw new CaissonError("UNAVAILABLE", `the engine speaks API ${String(ApiVersion)}, not 1.40 or newer`);
  const components = (body as { Components?: unknown }).Components;
  const isPodman =
    Array.isArray(components) && components.some(({ Name }) => String(Name).startsWith("Podman"));
  return { version: agreed.join("."), isPodman };
}

type Version = readonly [number, number];

function parse(text: unknown): Version {
  const found = /^(\d{1,3})\.(\d{1,4})$/.exec(String(text));
  if (!found) throw new CaissonError("UNAVAILABLE", "the engine's version cannot be understood");
  return [Number(found[1]), Number(found[2])];
}

function isBelow(one: Version, other: Version): boolean {
  return one[0] !== other[0] ? one[0] < other[0] : one[1] < other[1];
}

function send(socketPath: string, call: EngineCall): Promise<Answer> {
  const query = call.query ? `?${new URLSearchParams(call.query)}` : "";
  const body = call.tar ?? (call.body === undefined ? undefined : JSON.stringify(call.body));
  const type = call.tar ? "application/x-tar" : "application/json";
  const headers = { host: "docker", ...(body === undefined ? {} : { "content-type": type }) };
  return new Promise((resolve, reject) => {
    const failed = (cause: Error) =>
      reject(new CaissonError("UNAVAILABLE", "the Docker engine does not answer", { cause }));
    const options = { socketPath, method: call.method, path: call.path + query, headers, agent: false };
    const sent = request(options, (response) => void read(response, call).then(resolve, reject));
    const timeout = call.timeoutMs ?? patienceMs;
    if (timeout > 0) sent.setTimeout(timeout, () => sent.destroy(new Error("no answer in time")));
    sent.on("error", failed);
    sent.end(body);
  });
}

async function read(response: IncomingMessage, call: EngineCall): Promise<Answer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of response) {
      bytes += (piece as Buffer).length;
      if (bytes > maxAnswerBytes) throw new Error("the answer is too large");
      pieces.push(piece as Buffer);
    }
  } catch (cause) {
    throw new CaissonError("UNAVAILABLE", "the Docker engine broke off its answer", { cause });
  }
  const status = response.statusCode ?? 0;
  const text = Buffer.concat(pieces).toString("utf8");
  const body = parseJson(text);
  if ((status >= 200 && status < 300) || status === 304 || call.accept?.includes(status))
    return { status, body };
  const words = String((body as { message?: unknown })?.message ?? text).replace(/[\p{Cc}\s]+/gu, " ");
  throw new CaissonError("SANDBOX_FAILED", `the Docker engine refused (${status}): ${words.slice(0, 300)}`);
}

/** Some answers are several objects, one per line; the last one counts. */
function parseJson(text: string): unknown {
  const last = text.trim().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(last);
  } catch {
    return undefined;
  }
}
