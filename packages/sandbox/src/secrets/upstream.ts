import { Agent, type ClientRequest, type RequestOptions, request } from "node:http";
import type { Pairs } from "../egress/http/headers.ts";
import type { JudgedTarget } from "../egress/seams.ts";
import { connectSecurely, unreachable } from "./secure.ts";

/** Connections to one host that belong to one connection of a program; each is verified. */
export class Upstream {
  readonly unreachable = unreachable;
  readonly #target: JudgedTarget;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4, keepAliveMsecs: 5000 });

  constructor(target: JudgedTarget, roots: readonly string[]) {
    this.#target = target;
    this.#agent.createConnection = (_options, done) => {
      connectSecurely(target, roots, ["http/1.1"]).then(
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
}
