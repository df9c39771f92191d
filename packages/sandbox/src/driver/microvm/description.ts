import { copyFile, readFile, stat, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { CaissonError } from "@caisson/contract/errors";
import { besideImage } from "./beside.ts";
import { rootImage } from "./root-image.ts";
import { disksOf, type Shape, type Template, type TemplateParts } from "./template.ts";

// What a machine was made from is noted in its directory, and beside each file that it is saved into.

const noteName = "machine.json";
const pageBytes = 4096;

type Description<S extends Shape> = TemplateParts & Pick<Template<S>, "shape">;

function describe<S extends Shape>({ kernel, initrd, image, beside, shape }: Description<S>): string {
  return JSON.stringify({ kernel, initrd, image, beside, shape });
}

export async function noteMachine<S extends Shape>(dir: string, template: Description<S>): Promise<void> {
  await writeFile(`${dir}/${noteName}`, describe(template));
}

/** The shape of a machine that an earlier daemon started. */
export async function notedShape<S extends Shape>(dir: string): Promise<S> {
  return (JSON.parse(await readFile(`${dir}/${noteName}`, "utf8")) as Description<S>).shape;
}

function isSize(bytes: unknown): boolean {
  return Number.isSafeInteger(bytes) && Number(bytes) > 0 && Number(bytes) % pageBytes === 0;
}

export function keepNote(dir: string, file: string): Promise<void> {
  return copyFile(`${dir}/${noteName}`, `${file}.json`);
}

/** Where a saved machine's memory is, beside its devices. */
export function memoryOf(file: string): string {
  return `${file}.memory`;
}

/** What a saved machine was made from; one that is larger than it may be, or than the host can hold, is refused. */
export async function readSaved<S extends Shape>(file: string, mostBytes: number): Promise<Description<S>> {
  const saved = JSON.parse(await readFile(`${file}.json`, "utf8")) as Description<S>;
  const { memoryBytes, sandboxBytes } = saved.shape;
  if (isSize(memoryBytes) && isSize(sandboxBytes) && memoryBytes <= mostBytes) return saved;
  const words = `the machine that was kept has ${Number(memoryBytes)} bytes of memory, and may have ${mostBytes} here`;
  throw new CaissonError("NOT_ENFORCEABLE", words, { metadata: { mechanism: "memory.machine" } });
}

/**
 * A saved machine as a template: what it goes on with beside its own is that of now. It has its disk's blocks in memory, so
 * disk, kernel and guest must be the very same; its size is its own.
 */
export async function templateOfSaved<S extends Shape>(
  file: string,
  saved: Description<S>,
  current: Template<S>,
): Promise<Template<S>> {
  const { memoryBytes, sandboxBytes } = saved.shape;
  const shape = { ...current.shape, memoryBytes, sandboxBytes };
  const { image, beside } = saved;
  const { beside: _, ...others } = { ...current, shape };
  const machine = { ...others, ...disksOf(saved) };
  const hasDisks =
    (image === current.image || (await isKept(image, rootImage))) &&
    (beside === undefined || (await isKept(beside, besideImage)));
  if (hasDisks && describe(saved) === describe(machine))
    return { ...machine, state: file, memory: memoryOf(file) };
  throw new CaissonError(
    "SANDBOX_FAILED",
    "this machine was kept before the host, its image or Caisson was changed; take the snapshot again",
  );
}

async function isKept(disk: string, kind: RegExp): Promise<boolean> {
  return kind.test(basename(disk)) && (await stat(disk).catch(() => undefined)) !== undefined;
}
