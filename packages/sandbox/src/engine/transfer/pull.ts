import { CaissonError } from "@caisson/contract";
import { unpackLayer } from "../../changes/index.ts";
import type { Guest } from "../../link/guest.ts";
import type { Box } from "../box.ts";
import type { EngineContext } from "../context.ts";
import { livingBox } from "../find.ts";
import type { SandboxRecord } from "../records.ts";
import { compareManifests, loadManifest, type Manifest, readManifest, storeManifest } from "./manifest.ts";
import { copiedLayer } from "./push.ts";
import { withoutWithheld } from "./withheld.ts";

const patienceMs = 600_000;
/** Nobody waits longer than this for a sandbox to be ended. */
const lastPatienceMs = 120_000;
/** Names of one request; a control message of the link holds many more bytes. */
const batchBytes = 64 * 1024;
const maxFiles = 1_000_000n;
/** Ends after which there is nobody left to ask. */
const silentEnds = new Set(["guest_died", "guest_lost", "host_rebooted", "start_failed"]);

const pulling = new WeakMap<Box, Promise<void>>();

/** Makes the daemon's copy of a project that was sent into a sandbox like the one inside. */
export async function fetchChanges(context: EngineContext, record: SandboxRecord): Promise<void> {
  if (!record.workspace.transferred) return;
  const box = livingBox(context, record.id);
  // One that is being ended fetches by itself.
  if (box?.over) await box.gone.promise;
  else if (box?.guest) await pull(context, box, box.guest, AbortSignal.timeout(patienceMs));
}

/** Before a sandbox goes, what it changed is fetched; if that fails, its end says so. */
export async function fetchLast(context: EngineContext, box: Box, reason: string): Promise<void> {
  if (!box.record.workspace.transferred || !box.guest || silentEnds.has(reason)) return;
  try {
    await pull(context, box, box.guest, AbortSignal.timeout(lastPatienceMs));
  } catch (error) {
    const { message } = CaissonError.from(error);
    context.log("error", "a sandbox's changes could not be fetched", { sandbox: box.id, error: message });
    box.record.endMessage ||= `its latest changes could not be fetched: ${message}`;
  }
}

/** One at a time for each sandbox; whoever comes meanwhile gets a look of his own. */
function pull(context: EngineContext, box: Box, guest: Guest, signal: AbortSignal): Promise<void> {
  const act = () => pullNow(context, box, guest, signal);
  const turn = (pulling.get(box) ?? Promise.resolve()).then(act, act);
  pulling.set(box, turn);
  turn.catch(() => {});
  return turn;
}

async function pullNow(context: EngineContext, box: Box, guest: Guest, signal: AbortSignal): Promise<void> {
  const layer = copiedLayer(context, box);
  const { dir } = box.record.workspace;
  const before = await loadManifest(layer.dir);
  const inside = await readManifest(guest.files, dir, signal);
  const now = withoutWithheld(inside, before, box.record.workspace.withheld ?? []);
  const { remove, fetch } = compareManifests(before, now);
  if (remove.length === 0 && fetch.length === 0) return;
  // Whatever is half taken over when the daemon dies is taken over again.
  await storeManifest(layer.dir, unsettled(before, now));
  let removing = remove.map(toBytes);
  const limits = { maxBytes: BigInt(box.record.limits.diskBytes), maxFiles };
  for (const names of batches(fetch)) {
    const content = await guest.files.pack(dir, signal, names);
    await unpackLayer(layer, { ...limits, remove: removing }, content);
    removing = [];
  }
  if (removing.length > 0) await unpackLayer(layer, { ...limits, remove: removing }, emptyArchive());
  await storeManifest(layer.dir, now);
}

/** Every name that either side has; those that differ in a state that nothing is ever in. */
function unsettled(before: Manifest, now: Manifest): Manifest {
  const both = new Map([...now, ...before]);
  for (const [name, state] of both) if (now.get(name) !== before.get(name)) both.set(name, `${state[0]}?`);
  return both;
}

function* batches(names: readonly string[]): Generator<Uint8Array[]> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const name of names) {
    if (bytes + name.length > batchBytes && batch.length > 0) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(toBytes(name));
    bytes += name.length + 8;
  }
  if (batch.length > 0) yield batch;
}

function toBytes(name: string): Uint8Array {
  return Buffer.from(name, "latin1");
}

/** Two blocks of zeros are the end of an archive. */
async function* emptyArchive(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1024);
}
