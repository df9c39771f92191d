import type { Duplex } from "node:stream";
import { CaissonError, rules } from "@caisson/contract";
import { type Connect, Connect_Kind } from "@caisson/contract/link";
import type { Connection } from "./connection.ts";
import type { GuestConnection } from "./guest.ts";
import { type Budget, LinkDuplex } from "./stream/link-duplex.ts";
import { LinkViolation } from "./violation.ts";

/** The TCP connections of one sandbox: those that programs inside open, and those that are opened to them. */
export class Connections {
  handler: ((connection: GuestConnection) => void) | undefined;
  readonly #budget: Budget = sharedBudget(rules.link.connections_queued_bytes);

  /** A program inside has opened one. */
  arrived(connect: Connect, connection: Connection): void {
    if (connection.guestStreams >= rules.link.connections) throw new LinkViolation("too many connections");
    const stream = new LinkDuplex(connection, connect.stream, this.#budget);
    if (!this.handler) {
      stream.destroy();
      return;
    }
    const kind = connect.kind === Connect_Kind.PROXY ? "proxy" : "transparent";
    try {
      this.handler({ kind, name: connect.name, port: connect.port, stream });
    } catch (error) {
      stream.destroy(CaissonError.from(error));
    }
  }

  /** Opens one to a port inside. */
  async dial(
    connection: Connection,
    call: { stream: number; port: number },
    signal: AbortSignal,
  ): Promise<Duplex> {
    const stream = new LinkDuplex(connection, call.stream, this.#budget);
    try {
      await connection.call("done", { case: "dial", value: call }, { signal });
      return stream;
    } catch (error) {
      // After a failure the guest has no such stream; after an abort it may.
      if (!signal.aborted) connection.drop(call.stream);
      stream.destroy();
      throw CaissonError.from(error);
    }
  }
}

function sharedBudget(bytes: number): Budget {
  let left = bytes;
  return {
    take: (wanted) => {
      if (wanted > left) return false;
      left -= wanted;
      return true;
    },
    give: (back) => {
      left += back;
    },
  };
}
