import type { Duplex } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { CaissonError, ForwardKind, type Port, PortSchema } from "@caisson/contract";
import type { ListeningPort } from "@caisson/contract/link";
import type { StateChange } from "@caisson/store";
import { printable } from "../link/failure.ts";
import { type ForwardRecord, newForwardId, newToken, toForward, waitForPort } from "../ports/index.ts";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import type { EnginePorts } from "./engine.ts";
import { readyBox } from "./find.ts";
import { kinds } from "./records.ts";

const defaultWaitMs = 30_000;
/** For a program inside to accept a connection. */
const dialTimeoutMs = 15_000;

/** Ports of sandboxes, as callers see them. */
export function enginePorts(context: EngineContext): EnginePorts {
  return {
    async list(sandboxId) {
      const box = await readyBox(context, sandboxId);
      return (await box.livingGuest().ports()).map(toPort);
    },

    async wait(sandboxId, { port, timeoutMs }, { signal }) {
      const box = await readyBox(context, sandboxId);
      const list = () => box.livingGuest().ports();
      return toPort(await waitForPort(list, port, timeoutMs || defaultWaitMs, signal));
    },

    async *forward(sandboxId, request, call) {
      const box = await readyBox(context, sandboxId);
      box.livingGuest();
      const kind = request.kind || ForwardKind.TCP;
      const forward = await context.forwards.open(
        {
          id: newForwardId(),
          sandboxId: box.id,
          port: request.port,
          kind,
          hostPort: request.hostPort,
          token: kind === ForwardKind.PREVIEW ? newToken() : "",
          detached: request.detach,
          openedAt: Date.now(),
          actor: call.actor,
        },
        () => dial(box, request.port),
      );
      const { record } = forward;
      try {
        await context.commit([opened(record)], record.detached ? [kept(record)] : []);
        // It may have ended while this was written, and then nobody closes what came too late.
        box.livingGuest();
      } catch (error) {
        context.forwards.close(record.id);
        throw error;
      }
      if (record.detached) {
        yield toForward(forward, { withToken: true });
        return;
      }
      const left = Promise.withResolvers<void>();
      const leave = () => left.resolve();
      call.signal.addEventListener("abort", leave, { once: true });
      if (call.signal.aborted) leave();
      try {
        yield toForward(forward, { withToken: true });
        await Promise.race([forward.closed, left.promise]);
      } finally {
        call.signal.removeEventListener("abort", leave);
        await closeForward(context, record, call.actor);
      }
    },

    async forwards(sandboxId) {
      const box = await readyBox(context, sandboxId);
      return context.forwards.of(box.id).map((forward) => toForward(forward, { withToken: false }));
    },

    async close(sandboxId, forwardId, call) {
      const box = await readyBox(context, sandboxId);
      await closeForward(context, context.forwards.get(box.id, forwardId).record, call.actor);
    },

    async connect(sandboxId, port, { signal }) {
      const box = await readyBox(context, sandboxId);
      return dial(box, port, signal);
    },
  };
}

/** A connection to a port inside, which keeps the sandbox from being idle. */
async function dial(box: Box, port: number, signal?: AbortSignal): Promise<Duplex> {
  const timeout = AbortSignal.timeout(dialTimeoutMs);
  const stream = await box.livingGuest().connect(port, signal ? AbortSignal.any([signal, timeout]) : timeout);
  stream.once("close", box.use());
  return stream;
}

async function closeForward(context: EngineContext, record: ForwardRecord, actor: string): Promise<void> {
  const isOpen = context.forwards.of(record.sandboxId).some((forward) => forward.record.id === record.id);
  if (!isOpen) return;
  context.forwards.close(record.id);
  const event = { type: "port.closed", actor, sandboxId: record.sandboxId, data: { forward: record.id } };
  await context.commit([event], record.detached ? [{ remove: kinds.forward, key: keyOf(record) }] : []);
}

/** Closes what leads into a sandbox that has ended. */
export function closeForwards(context: EngineContext, box: Box): StateChange[] {
  const forwards = context.forwards.of(box.id);
  for (const { record } of forwards) context.forwards.close(record.id);
  const stored = [...context.store.scan<ForwardRecord>(kinds.forward, `${box.id}/`)];
  return stored.map(([key]) => ({ remove: kinds.forward, key }));
}

/** Opens again what an earlier daemon had open, at the same ports. */
export async function reopenForwards(context: EngineContext, box: Box): Promise<void> {
  for (const [key, record] of context.store.scan<ForwardRecord>(kinds.forward, `${box.id}/`)) {
    try {
      await context.forwards.open(record, () => dial(box, record.port));
    } catch (error) {
      const { message } = CaissonError.from(error);
      context.log("warn", "a forward could not be opened again", {
        sandbox: box.id,
        forward: record.id,
        message,
      });
      const data = { forward: record.id, message };
      await context.commit(
        [{ type: "port.closed", actor: "daemon", sandboxId: box.id, data }],
        [{ remove: kinds.forward, key }],
      );
    }
  }
}

function opened({ id, actor, sandboxId, port, hostPort, kind, detached }: ForwardRecord) {
  const data = {
    forward: id,
    port,
    host_port: hostPort,
    kind: kind === ForwardKind.PREVIEW ? "preview" : "tcp",
    detached,
  };
  return { type: "port.forwarded", actor, sandboxId, data };
}

function kept(record: ForwardRecord): StateChange {
  return { put: kinds.forward, key: keyOf(record), value: record };
}

function keyOf({ id, sandboxId }: ForwardRecord): string {
  return `${sandboxId}/${id}`;
}

function toPort({ port, address, pid, command }: ListeningPort): Port {
  return create(PortSchema, { port, address, pid, command: printable(command) });
}
