// Machines with their memory that came from outside: do they fit here, and what is believed of what came with them.
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CaissonError } from "@caisson/contract";
import type { Driver } from "../../driver/driver.ts";
import type { ProcessRecord } from "../records.ts";
import { invalid, type SnapshotDocument } from "./document.ts";
import { parts, type SnapshotRecord } from "./record.ts";

/** The devices of a machine, without its memory. */
const maxStateBytes = 64 << 20;
const maxNoteBytes = 64 << 10;
/** A command's arguments, all together; and what it printed that is kept with its record. */
const maxArgvBytes = 1 << 20;
const maxInlineBytes = 64 << 10;

/** Refuses a machine that cannot go on here, or that nobody wants to trust. */
export async function checkMachine(
  driver: Driver,
  document: SnapshotDocument,
  dir: string,
  isWanted: boolean,
): Promise<void> {
  if (!isWanted) {
    const words = "it holds the memory of a machine that somebody else ran: ask for memory if you trust them";
    throw new CaissonError("INVALID_INPUT", words);
  }
  if (!driver.mustFit || !driver.machineHost) throw invalid(`${driver.name} has no machines`);
  runningOf(document, "");
  await checkFiles(`${dir}/${parts.machine}`);
  if (document.host !== (await driver.machineHost())) {
    const words = "it was taken on another kind of host: a machine goes on only on the same processor";
    throw invalid(`${words}, with the same program to play it`);
  }
  await driver.mustFit(`${dir}/${parts.machine}`).catch((error) => {
    const { code, message } = CaissonError.from(error);
    throw code === "SANDBOX_FAILED"
      ? invalid("it was taken with another host image, kernel or Caisson than there is here")
      : new CaissonError(code, message, { cause: error });
  });
}

/** The files are of the sizes that the note says, and the disks that it names lie where machines' disks are. */
async function checkFiles(file: string): Promise<void> {
  const [state, memory, note] = await Promise.all([stat(file), stat(`${file}.memory`), stat(`${file}.json`)]);
  if (state.size > maxStateBytes || note.size > maxNoteBytes) throw invalid("its machine is too large");
  const said = noted(await readFile(`${file}.json`, "utf8"));
  if (said.shape?.memoryBytes !== memory.size) throw invalid("its memory is not of the size that it says");
  const { initrd, image, beside = image } = said;
  // That it is the host's own initrd is compared with what there is.
  const isBesideInitrd = (disk: unknown) =>
    typeof initrd === "string" && typeof disk === "string" && dirname(disk) === dirname(initrd);
  if (!isBesideInitrd(image) || !isBesideInitrd(beside)) throw invalid("its machine is described wrongly");
}

interface Note {
  initrd?: unknown;
  image?: unknown;
  beside?: unknown;
  shape?: { memoryBytes?: unknown };
}

function noted(text: string): Note {
  try {
    return Object(JSON.parse(text));
  } catch {
    throw invalid("its machine is described wrongly");
  }
}

export type Running = Pick<SnapshotRecord, "processes" | "outputs"> & { lastProcess: number };

/** The commands that run in a machine, started by `actor` as far as this daemon knows; those that have ended stay behind. */
export function runningOf({ processes, outputs }: SnapshotDocument | SnapshotRecord, actor: string): Running {
  const all = processes.map((record) => readProcess(record, actor));
  const numbers = all.flatMap(({ id, stream }) => [id, stream]);
  if (new Set(numbers).size !== numbers.length) throw invalid("its commands have the same numbers");
  const running = all.filter((_, index) => processes[index]!.exit === undefined);
  const kept = running.flatMap(({ id }) =>
    Object.hasOwn(outputs, id) ? [[id, readInline(outputs[id])] as const] : [],
  );
  const lastProcess = Math.max(0, ...all.map(({ id }) => Number(id.slice(1))));
  return { processes: running, outputs: Object.fromEntries(kept), lastProcess };
}

function readProcess(value: unknown, actor: string): ProcessRecord {
  const said = Object(value) as Partial<Record<keyof ProcessRecord, unknown>>;
  const { id, stream, argv, cwd, startedAt } = said;
  const isList = Array.isArray(argv) && argv.every((word) => typeof word === "string");
  if (
    typeof id !== "string" ||
    !/^p[1-9]\d{0,8}$/.test(id) ||
    !isNumber(stream, 2 ** 31) ||
    !isList ||
    argv.join("").length > maxArgvBytes ||
    typeof cwd !== "string" ||
    cwd.length > 4096 ||
    !isNumber(startedAt, Number.MAX_SAFE_INTEGER)
  ) {
    throw invalid("one of its commands is described wrongly");
  }
  const flags = { hasTerminal: said.hasTerminal === true, keepStdin: said.keepStdin === true };
  const open = { announced: true, endedAt: 0, exit: undefined, seq: 0, firstKeptSeq: 0 };
  return { id, sandboxId: "", stream, argv, cwd, ...flags, actor, startedAt, ...open };
}

function isNumber(value: unknown, below: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < below;
}

/** Pairs of a tag and what was printed, in base 64. */
function readInline(value: unknown): [number, string][] {
  const isPair = (pair: unknown) =>
    Array.isArray(pair) && (pair[0] === 1 || pair[0] === 2) && typeof pair[1] === "string";
  if (!Array.isArray(value) || !value.every(isPair)) throw invalid("what its commands printed is no output");
  const pairs = value.map(([tag, text]): [number, string] => [tag, text]);
  if (pairs.reduce((bytes, [, text]) => bytes + text.length, 0) > maxInlineBytes)
    throw invalid("what its commands printed is too much");
  return pairs;
}
