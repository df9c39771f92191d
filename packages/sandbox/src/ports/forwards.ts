import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CaissonError, type Forward, ForwardKind, ForwardSchema } from "@caisson/contract";
import type { Dial, Entrance } from "./entrance.ts";
import { openTcp } from "./tcp.ts";

/** What is kept of a forward, as JSON. */
export interface ForwardRecord {
  id: string;
  sandboxId: string;
  port: number;
  kind: ForwardKind;
  hostPort: number;
  /** Of a preview; otherwise empty. */
  token: string;
  detached: boolean;
  openedAt: number;
  actor: string;
}

export interface OpenForward {
  readonly record: ForwardRecord;
  readonly entrance: Entrance;
  /** Of a preview, with its token; otherwise empty. */
  readonly url: string;
  /** Resolves when it is closed. */
  readonly closed: Promise<void>;
}

const maxPerSandbox = 64;

/** The forwards of all sandboxes. */
export class Forwards {
  readonly #open = new Map<string, OpenForward & { resolve(): void }>();

  /** In the order of their opening. */
  of(sandboxId: string): OpenForward[] {
    return [...this.#open.values()].filter(({ record }) => record.sandboxId === sandboxId);
  }

  get(sandboxId: string, id: string): OpenForward {
    const forward = this.#open.get(id);
    if (forward?.record.sandboxId === sandboxId) return forward;
    throw new CaissonError("FORWARD_NOT_FOUND", "there is no such forward");
  }

  /** Opens one, new or as it was before; its record has the port that it got. */
  async open(wanted: ForwardRecord, dial: Dial): Promise<OpenForward> {
    if (this.of(wanted.sandboxId).length >= maxPerSandbox) {
      throw new CaissonError("RATE_LIMITED", `a sandbox may have ${maxPerSandbox} forwards at once`);
    }
    const { entrance, url } = await enter(wanted, dial);
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const forward = { record: { ...wanted, hostPort: entrance.hostPort }, entrance, url, closed, resolve };
    this.#open.set(wanted.id, forward);
    return forward;
  }

  close(id: string): void {
    const forward = this.#open.get(id);
    if (!forward) return;
    this.#open.delete(id);
    forward.entrance.close();
    forward.resolve();
  }

  closeAll(): void {
    for (const id of [...this.#open.keys()]) this.close(id);
  }
}

async function enter(record: ForwardRecord, dial: Dial): Promise<{ entrance: Entrance; url: string }> {
  const { hostPort, kind, port, token } = record;
  if (kind !== ForwardKind.PREVIEW) return { entrance: await openTcp(hostPort, dial), url: "" };
  const [{ openPreview }, { entryUrl }] = await Promise.all([
    import("./preview/server.ts"),
    import("./preview/gate.ts"),
  ]);
  const label = labelOf(record);
  const entrance = await openPreview(hostPort, { label, token, port, dial });
  return { entrance, url: entryUrl({ label, token, hostPort: entrance.hostPort }) };
}

export function newForwardId(): string {
  return `fw_${randomBytes(8).toString("hex")}`;
}

export function newToken(): string {
  return randomBytes(24).toString("base64url");
}

/** As callers see it; the token only where it is handed out. */
export function toForward({ record, url }: OpenForward, options: { withToken: boolean }): Forward {
  const { id, sandboxId, port, kind, hostPort, detached, openedAt } = record;
  const shown = options.withToken || url === "" ? url : `http://${labelOf(record)}.localhost:${hostPort}/`;
  const at = timestampFromMs(openedAt);
  return create(ForwardSchema, { id, sandboxId, port, kind, hostPort, detached, url: shown, openedAt: at });
}

function labelOf({ id }: ForwardRecord): string {
  return id.replace("_", "-");
}
