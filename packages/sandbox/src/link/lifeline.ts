import type { Duplex } from "node:stream";
import { CaissonError } from "@caisson/contract";
import type { Connect, Exited, GuestHello, StreamPosition } from "@caisson/contract/link";
import { Connection } from "./connection.ts";
import { LinkCut } from "./failure.ts";
import { checkHello, sayHello } from "./handshake.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { LinkSettings } from "./options.ts";
import { LinkViolation } from "./violation.ts";

type Positions = Pick<StreamPosition, "stream" | "position">[];

/** What lives across connections: the processes. */
export interface Survivors {
  /** The lowest stream number that was never used. */
  readonly nextStream: number;
  /** Resolves with how far each process's output is stored, once nothing is being written any more. */
  settle(): Promise<Positions>;
  /** Goes on with a new connection. Throws LinkViolation when the guest's state does not fit. */
  bind(connection: Connection, hello: GuestHello, positions: Positions): void;
  exited(exited: Exited, connection: Connection): void;
  fail(error: CaissonError): void;
}

/** Sinks have so long to store what came last before a guest counts as lost. */
const lastWritesMs = 2000;

/** Keeps one connection to a guest open, opens it again after a cut, and knows when it is lost for good. */
export class Lifeline {
  /** Resolves once when nothing will come any more; not after `close`. */
  readonly lost: Promise<Error>;
  readonly #connect: () => Promise<Duplex>;
  readonly #settings: LinkSettings;
  readonly #survivors: Survivors;
  readonly #connected: (connect: Connect, connection: Connection) => void;
  #state: "opening" | "open" | "lost" | "closed" = "opening";
  #connection: Connection | undefined;
  #heartbeat: Heartbeat | undefined;
  #hello: GuestHello | undefined;
  #attempt = 0;
  #openedAt = 0;
  #endReason: string | undefined;
  #endExpected = false;
  #error: CaissonError | undefined;
  #waiters: { resolve(connection: Connection): void; reject(error: CaissonError): void }[] = [];
  #resolveLost!: (error: Error) => void;

  /** `connected` is told of each connection that a program inside has opened. */
  constructor(
    connect: () => Promise<Duplex>,
    settings: LinkSettings,
    survivors: Survivors,
    connected: (connect: Connect, connection: Connection) => void,
  ) {
    this.#connect = connect;
    this.#connected = connected;
    this.#settings = settings;
    this.#survivors = survivors;
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve;
    });
  }

  get hello(): GuestHello {
    return this.#hello!;
  }

  /** The connection, if it is open at this moment. */
  get connection(): Connection | undefined {
    return this.#connection;
  }

  /** Opens the link for the first time. A guest that is there answers; so there are few attempts. */
  async open(): Promise<void> {
    const delays = this.#settings.reconnectDelaysMs.filter((delay) => delay <= 500);
    for (const [attempt, delay] of delays.entries()) {
      await sleep(delay);
      try {
        if (this.#state !== "opening") throw this.#error!;
        await this.#openOnce();
        return;
      } catch (error) {
        const again = error instanceof LinkCut || !(error instanceof CaissonError);
        if (again && attempt < delays.length - 1 && this.#state === "opening") continue;
        this.#end("lost", lostBecause("the link could not be opened", error));
        throw this.#error!;
      }
    }
  }

  /** The open connection, now or after a cut is mended. */
  ready(): Promise<Connection> {
    if (this.#connection) return Promise.resolve(this.#connection);
    if (this.#error) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** Cuts the connection and opens the next one, which begins with what the survivors say then. */
  reopen(delayMs: number): void {
    if (this.#state !== "open") return;
    this.#attempt = 0;
    this.#suspend(new LinkCut());
    void this.#mend(delayMs);
  }

  /** The wall is closed; a guest that says otherwise later is another one. */
  sealed(): void {
    this.hello.sealed = true;
  }

  /** The sandbox's process is gone: what is still in the socket is read, then it is over. */
  sandboxEnded(reason: string): void {
    this.#endReason = reason;
    if (!this.#connection) this.lose(gone(reason));
    else setTimeout(() => this.lose(gone(reason)), 500).unref();
  }

  /** The next cut is the end, as wished. */
  expectEnd(): void {
    this.#endExpected = true;
  }

  lose(error: CaissonError): void {
    this.#end("lost", error);
  }

  close(): void {
    this.#end("closed", new CaissonError("UNAVAILABLE", "the daemon has closed the link"));
  }

  async #openOnce(): Promise<void> {
    const positions = await this.#survivors.settle();
    const socket = await this.#connect();
    if (this.#state !== "opening") {
      socket.destroy();
      throw this.#error!;
    }
    const connection: Connection = new Connection(socket, this.#survivors.nextStream, {
      exited: (exited) => this.#survivors.exited(exited, connection),
      connected: (connect) => {
        if (connection !== this.#connection || !this.hello.sealed) {
          throw new LinkViolation("a connection before the wall is closed");
        }
        this.#connected(connect, connection);
      },
      closed: (error) => this.#onClosed(connection, error),
    });
    this.#connection = undefined;
    const { helloTimeoutMs } = this.#settings;
    const timer = setTimeout(
      () => connection.close(lostBecause("the guest does not answer")),
      helloTimeoutMs,
    );
    try {
      await sayHello(connection, positions, (hello) => {
        if (this.#state !== "opening") throw this.#error!;
        checkHello(hello, this.#settings.build, this.#hello);
        this.#survivors.bind(connection, hello, positions);
        this.#onOpen(connection, hello);
      });
    } catch (error) {
      connection.close(CaissonError.from(error));
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #onOpen(connection: Connection, hello: GuestHello): void {
    this.#hello = hello;
    this.#connection = connection;
    this.#state = "open";
    this.#openedAt = performance.now();
    this.#heartbeat = new Heartbeat(connection, {
      everyMs: this.#settings.heartbeatMs,
      missed: this.#settings.heartbeatMissed,
      onDead: (why) => this.lose(lostBecause(why)),
    });
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.resolve(connection);
  }

  #onClosed(connection: Connection, error: CaissonError): void {
    if (connection !== this.#connection) return;
    this.#suspend(error);
    if (this.#endExpected) this.close();
    else if (!(error instanceof LinkCut)) this.lose(error);
    else if (this.#endReason !== undefined) this.lose(gone(this.#endReason));
    else {
      if (performance.now() - this.#openedAt >= this.#settings.stableMs) this.#attempt = 0;
      void this.#mend(0);
    }
  }

  async #mend(extraDelayMs: number): Promise<void> {
    let cause: unknown;
    for (let delay = extraDelayMs; ; delay = 0) {
      const next = this.#settings.reconnectDelaysMs[this.#attempt];
      if (next === undefined) {
        this.lose(lostBecause("the link was cut and could not be opened again", cause));
        return;
      }
      this.#attempt += 1;
      await sleep(delay + next);
      if (this.#state !== "opening") return;
      try {
        await this.#openOnce();
        return;
      } catch (error) {
        if (this.#state !== "opening") return;
        if (error instanceof CaissonError && !(error instanceof LinkCut)) {
          this.lose(error);
          return;
        }
        cause = error;
      }
    }
  }

  #suspend(error: CaissonError): void {
    const connection = this.#connection;
    this.#state = "opening";
    this.#connection = undefined;
    this.#heartbeat?.stop();
    connection?.close(error);
  }

  #end(state: "lost" | "closed", error: CaissonError): void {
    if (this.#state === "lost" || this.#state === "closed") return;
    this.#suspend(error);
    this.#state = state;
    this.#error = error;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(error);
    this.#survivors.fail(error);
    if (state === "lost") void this.#lastWrites().then(() => this.#resolveLost(error));
  }

  /** What came before the end is stored, if the sinks can: an exit may be among it. */
  async #lastWrites(): Promise<void> {
    const patience = new Promise<void>((resolve) => setTimeout(resolve, lastWritesMs).unref());
    await Promise.race([this.#survivors.settle(), patience]);
  }
}

function gone(reason: string): CaissonError {
  return lostBecause(`the sandbox is gone: ${reason}`);
}

/** Keeps an error of the table as it is; what is not becomes the cause of a lost guest. */
function lostBecause(why: string, cause?: unknown): CaissonError {
  const known = cause instanceof CaissonError && !(cause instanceof LinkCut);
  return known ? cause : new CaissonError("GUEST_LOST", why, { cause });
}

function sleep(ms: number): Promise<void> {
  return ms === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}
