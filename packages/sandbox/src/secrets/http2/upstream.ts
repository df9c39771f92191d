import { type ClientHttp2Session, connect } from "node:http2";
import type { JudgedTarget } from "../../egress/seams.ts";
import { connectSecurely } from "../secure.ts";

/** The one connection to a host that belongs to one connection of a program; made anew when the host has ended it. */
export class Http2Upstream {
  readonly #target: JudgedTarget;
  readonly #roots: readonly string[];
  #session: Promise<ClientHttp2Session> | undefined;
  #closed = false;

  constructor(target: JudgedTarget, roots: readonly string[]) {
    this.#target = target;
    this.#roots = roots;
  }

  session(): Promise<ClientHttp2Session> {
    this.#session ??= this.#open().catch((error) => {
      this.#session = undefined;
      throw error;
    });
    return this.#session;
  }

  close(): void {
    this.#closed = true;
    this.#session?.then(
      (session) => session.destroy(),
      () => {},
    );
  }

  async #open(): Promise<ClientHttp2Session> {
    const { name, port } = this.#target;
    // HTTP/1.1 is offered to learn that the host knows nothing else.
    const socket = await connectSecurely(this.#target, this.#roots, ["h2", "http/1.1"]);
    if (socket.alpnProtocol !== "h2" || this.#closed) {
      socket.destroy();
      this.#target.failed(`${name} does not speak HTTP/2, and the program speaks nothing else`);
      throw new Error("no HTTP/2");
    }
    const session = connect(`https://${name.includes(":") ? `[${name}]` : name}:${port}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
    });
    const forget = () => {
      this.#session = undefined;
    };
    // Each stream hears of it by itself.
    session.on("error", () => {});
    session.once("goaway", forget);
    session.once("close", forget);
    return session;
  }
}
