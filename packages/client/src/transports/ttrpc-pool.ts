import { CaissonError } from "@caisson/contract/errors";
import { Connection } from "./ttrpc-connection.ts";

/** Connections that wait for the next stream; more are closed. */
const maxIdle = 4;

/** The connections to one socket. */
export class ConnectionPool {
  readonly #path: string;
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  #shared: Connection | undefined;
  #closed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** The connection that unary calls share. */
  shared(): Connection {
    if (!this.#shared || this.#shared.closed) this.#shared = this.#connect();
    return this.#shared;
  }

  /** A connection for one stream alone. */
  take(): Connection {
    let connection = this.#idle.pop();
    while (connection?.closed) connection = this.#idle.pop();
    connection ??= this.#connect();
    this.#busy.add(connection);
    return connection;
  }

  /** Takes back a connection whose stream came to its end; any other must be destroyed. */
  giveBack(connection: Connection): void {
    this.#busy.delete(connection);
    connection.finish();
    if (this.#closed || connection.closed || this.#idle.length >= maxIdle) connection.destroy();
    else this.#idle.push(connection);
  }

  drop(connection: Connection): void {
    this.#busy.delete(connection);
    connection.destroy();
  }

  close(): void {
    this.#closed = true;
    this.#shared?.destroy();
    for (const connection of this.#idle.splice(0)) connection.destroy();
    for (const connection of this.#busy) connection.destroy();
  }

  #connect(): Connection {
    if (this.#closed) throw new CaissonError("CANCELLED", "this client was closed");
    return new Connection(this.#path);
  }
}
