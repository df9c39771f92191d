import { Agent, type ClientRequest, type RequestOptions, request } from "node:http";
import { isIP } from "node:net";
import { connect, createSecureContext, type SecureContext } from "node:tls";
import type { JudgedTarget } from "../egress/seams.ts";
import type { Pairs } from "./injector.ts";

const handshakeWithinMs = 15_000;
const contexts = new WeakMap<readonly string[], SecureContext>();

/** Connections to one host that belong to one connection of a program; each is verified. */
export class Upstream {
  readonly #target: JudgedTarget;
  readonly #context: SecureContext;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4, keepAliveMsecs: 5000 });

  constructor(target: JudgedTarget, roots: readonly string[]) {
    this.#target = target;
    // Reading a hundred and fifty certificates takes its time: once is enough.
    this.#context = contexts.get(roots) ?? createSecureContext({ ca: [...roots] });
    contexts.set(roots, this.#context);
    this.#agent.createConnection = (_options, done) => {
      this.#connect().then(
        (socket) => done?.(null, socket),
        (error) => done?.(error, undefined as never),
      );
      return undefined;
    };
  }

  request(method: string, path: string, headers: Pairs): ClientRequest {
    const { name, port } = this.#target;
    const options: RequestOptions = {
      agent: this.#agent,
      host: name,
      port,
      method,
      path,
      headers: headers.flat() as unknown as Record<string, string>,
      setHost: false,
    };
    return request(options);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #connect() {
    const { name } = this.#target;
    const socket = await this.#target.dial();
    const secure = connect({
      socket,
      secureContext: this.#context,
      host: name,
      ...(isIP(name) === 0 ? { servername: name } : {}),
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: true,
    });
    const timer = setTimeout(() => secure.destroy(), handshakeWithinMs).unref();
    try {
      await new Promise<void>((resolve, reject) => {
        secure.once("secureConnect", resolve);
        secure.once("error", reject);
        secure.once("close", () => reject(new Error("the host closed the connection")));
      });
    } finally {
      clearTimeout(timer);
    }
    return secure;
  }
}
