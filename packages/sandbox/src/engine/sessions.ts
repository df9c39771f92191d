import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  CaissonError,
  type CallContext,
  type Network,
  type SandboxSpec,
  SandboxSpecSchema,
  type Session,
  SessionSchema,
  seesAll,
} from "@caisson/contract";
import { canonicalJson } from "@caisson/store";
import type { Box } from "./box.ts";
import type { EngineContext } from "./context.ts";
import { type CreateRequest, createBox } from "./create.ts";
import type { SpecInit } from "./engine.ts";
import { modeOf, type NetworkRecord } from "./network/record.ts";

/** Sessions that are being made, by name in lower case: two callers at once share one. */
const opening = new WeakMap<EngineContext, Map<string, Promise<Box>>>();

export function checkSessionName(name: string): void {
  if (/^[A-Za-z0-9._-]{1,128}$/.test(name)) return;
  throw new CaissonError("INVALID_INPUT", "a session's name has 1 to 128 characters of `[A-Za-z0-9._-]`");
}

/** The sandbox of a session, made if there is none. */
export async function openSession(
  context: EngineContext,
  name: string,
  init: SpecInit,
  call: CallContext,
  request: Partial<CreateRequest> = {},
): Promise<{ box: Box; created: boolean }> {
  checkSessionName(name);
  const key = name.toLowerCase();
  const underWay = openingOf(context);
  // One that is being ended gives its name up when it is gone.
  for (
    let box = context.sessions.get(key);
    box?.ending && !underWay.has(key);
    box = context.sessions.get(key)
  ) {
    await box.gone.promise;
  }
  const existing = underWay.get(key) ?? context.sessions.get(key);
  if (existing) {
    const box = await existing;
    if (!seesAll(call) && box.record.actor !== call.actor)
      throw new CaissonError("SESSION_CONFLICT", "a session of this name is another's");
    checkSameSpec(create(SandboxSpecSchema, init), box);
    await box.ready.promise;
    return { box, created: false };
  }
  const made = createBox(context, init, { session: name, wait: true, remember: () => [], ...request }, call);
  underWay.set(key, made);
  try {
    const box = await made;
    await context.commit([{ type: "session.opened", actor: call.actor, sandboxId: box.id, data: { name } }]);
    return { box, created: true };
  } finally {
    underWay.delete(key);
  }
}

export function toSession(box: Box): Session {
  return create(SessionSchema, { name: box.record.session, sandbox: box.message() });
}

/** An existing session keeps its spec: what a caller names must be what it has; what he leaves out is accepted. */
function checkSameSpec(asked: SandboxSpec, box: Box): void {
  const has = fromJson(SandboxSpecSchema, box.record.spec as JsonValue, { ignoreUnknownFields: true });
  const askedJson = toJson(SandboxSpecSchema, asked) as Record<string, unknown>;
  const hasJson = toJson(SandboxSpecSchema, has) as Record<string, unknown>;
  for (const field of Object.keys(askedJson)) {
    if (field === "network" && box.record.network && isWithin(asked.network!, box.record.network)) continue;
    if (field === "minimumTier" && box.record.tier >= asked.minimumTier) continue;
    if (canonicalJson(askedJson[field]) === canonicalJson(hasJson[field] ?? null)) continue;
    throw new CaissonError("SESSION_CONFLICT", `the session exists with another ${snakeCase(field)}`, {
      metadata: { field: snakeCase(field) },
    });
  }
}

/** What configuration and profile added to a request is no difference, nor is what was changed since. */
function isWithin(asked: Network, has: NetworkRecord): boolean {
  const known = new Set([...has.allow, ...has.deny, ...has.presets]);
  const mode = modeOf(asked.mode);
  return (
    (mode === undefined || mode === has.mode) &&
    [...asked.allow, ...asked.deny, ...asked.presets].every((rule) => known.has(rule))
  );
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function openingOf(context: EngineContext): Map<string, Promise<Box>> {
  let map = opening.get(context);
  if (!map) {
    map = new Map();
    opening.set(context, map);
  }
  return map;
}
