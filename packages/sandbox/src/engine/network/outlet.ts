import { soonMs } from "@caisson/store";
import type { EgressDoor } from "../../egress/door.ts";
import { type EgressLimits, Policy } from "../../egress/index.ts";
import type { Guest, GuestConnection } from "../../link/guest.ts";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { askForConnection } from "./ask.ts";
import { type NetworkRecord, offline } from "./record.ts";
import { resolverOf } from "./resolver.ts";

/** A sandbox's way out. What it takes to open connections is loaded with the first one. */
export class Outlet {
  readonly #context: EngineContext;
  readonly #box: Box;
  #door: EgressDoor | undefined;
  #opening: Promise<EgressDoor> | undefined;
  #closed = false;

  constructor(context: EngineContext, box: Box) {
    this.#context = context;
    this.#box = box;
  }

  /** Takes everything that programs inside try to reach from now on. */
  attach(guest: Guest): void {
    guest.onConnection((connection) => this.#handle(connection));
  }

  get usage(): { connections: number; sent: number; received: number } {
    return this.#door?.usage ?? { connections: 0, sent: 0, received: 0 };
  }

  /** The record has changed: puts it in force, and returns how many open connections were cut. */
  update(): number {
    return this.#door?.update(this.#policy(), this.#limits) ?? 0;
  }

  close(): void {
    this.#closed = true;
    this.#door?.close();
  }

  #handle(connection: GuestConnection): void {
    if (this.#door) {
      this.#door.handle(connection);
      return;
    }
    this.#opening ??= this.#open();
    this.#opening.then(
      (door) => door.handle(connection),
      (error) => {
        this.#opening = undefined;
        this.#context.log("error", "a sandbox's way out cannot be opened", { error: String(error) });
        connection.stream.destroy();
      },
    );
  }

  async #open(): Promise<EgressDoor> {
    const context = this.#context;
    const box = this.#box;
    const [{ EgressDoor }, resolver] = await Promise.all([
      import("../../egress/door.ts"),
      resolverOf(context),
    ]);
    const door = new EgressDoor({
      sandboxId: box.id,
      policy: this.#policy(),
      limits: this.#limits,
      resolver,
      passed: this.#limits.bytes > 0 ? passedBefore(context, box.id) : 0,
      keep: (events) => {
        context.commit(events, [], { withinMs: soonMs }).catch((error) => {
          context.log("error", "a decision about the network was not recorded", { error: String(error) });
        });
      },
      ask: (request) => askForConnection(context, box, request),
      ...(box.interceptor ? { interceptor: box.interceptor } : {}),
    });
    this.#door = door;
    if (this.#closed) door.close();
    return door;
  }

  get #record(): NetworkRecord {
    return this.#box.record.network ?? offline;
  }

  get #limits(): EgressLimits {
    return this.#record.limits;
  }

  #policy(): Policy {
    const { mode, allow, presetRules, deny } = this.#record;
    const { bounds } = this.#context.settings.network;
    const { ownPorts } = this.#context.parts;
    // A mode that the machine has forbidden since gives way, as everything does.
    const kept = bounds.modes && !bounds.modes.includes(mode) ? "off" : mode;
    return new Policy({
      mode: kept,
      allow: [...allow, ...presetRules],
      deny,
      bounds,
      ...(ownPorts ? { ownPorts } : {}),
    });
  }
}

/** Bytes that went over the connections of a sandbox under earlier daemons. */
function passedBefore({ store }: EngineContext, sandboxId: string): number {
  let bytes = 0;
  for (let from = 0; ; ) {
    const page = store.read({ from, sandboxId, types: ["network.closed"] });
    for (const { data } of page) bytes += Number(data.sent ?? 0) + Number(data.received ?? 0);
    if (page.length === 0) return bytes;
    from = page.at(-1)!.seq;
  }
}
