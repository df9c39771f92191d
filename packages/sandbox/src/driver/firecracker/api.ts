import { request } from "node:http";
import { CaissonError } from "@caisson/contract/errors";
import { connectOwned } from "./socket.ts";

/** Firecracker is confined and may have been taken over: what it says is bounded. */
const maxAnswerBytes = 64 * 1024;
const answerWithinMs = 30_000;

/** A machine's API: JSON over HTTP on a Unix socket (its published description: `src/firecracker/swagger`). */
export class Api {
  readonly #socket: string;
  readonly #uid: number;

  constructor(socket: string, uid: number) {
    this.#socket = socket;
    this.#uid = uid;
  }

  put(path: string, body: object, withinMs?: number): Promise<unknown> {
    return this.#call("PUT", path, body, withinMs);
  }

  patch(path: string, body: object, withinMs?: number): Promise<unknown> {
    return this.#call("PATCH", path, body, withinMs);
  }

  get(path: string): Promise<unknown> {
    return this.#call("GET", path);
  }

  async #call(method: string, path: string, body?: object, withinMs = answerWithinMs): Promise<unknown> {
    const socket = await connectOwned(this.#socket, this.#uid);
    const content = body === undefined ? "" : JSON.stringify(body);
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
    const call = request({
      createConnection: () => socket,
      method,
      path,
      signal: AbortSignal.timeout(withinMs),
      headers: {
        Host: "localhost",
        Accept: "application/json",
        Connection: "close",
        ...(content === ""
          ? {}
          : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(content) }),
      },
    });
    call.once("error", reject);
    call.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
        if (text.length > maxAnswerBytes) response.destroy(new Error("it says too much"));
      });
      response.once("error", reject);
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    call.end(content);
    try {
      const { status, text } = await promise;
      if (status >= 200 && status < 300) return text === "" ? undefined : JSON.parse(text);
      throw new CaissonError("SANDBOX_FAILED", `Firecracker refused ${method} ${path}: ${fault(text)}`);
    } catch (cause) {
      if (cause instanceof CaissonError) throw cause;
      throw new CaissonError("GUEST_LOST", `Firecracker does not answer ${method} ${path}`, { cause });
    } finally {
      socket.destroy();
    }
  }
}

function fault(text: string): string {
  try {
    return String((JSON.parse(text) as { fault_message?: unknown }).fault_message).slice(0, 300);
  } catch {
    return text.slice(0, 300);
  }
}
