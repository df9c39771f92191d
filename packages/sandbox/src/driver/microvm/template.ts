import { hash, randomUUID } from "node:crypto";
import { mkdir, rm, stat } from "node:fs/promises";
import { CaissonError } from "@caisson/contract/errors";
import type { Keeper, Kept } from "../../keeper/index.ts";
import type { Beside } from "./beside.ts";
import { describeEnd } from "./end.ts";
import type { Progress } from "./erofs.ts";
import { buildingPlace, keepTemplate, nameOfSize } from "./keep-template.ts";
import { touchTemplate } from "./touch-template.ts";

/** What a saved state depends on, beside its parts. */
export interface Shape {
  memoryBytes: number;
  /** What of it is left to a sandbox, and bounded inside. */
  sandboxBytes: number;
}

/** The files of a machine's disks; `beside` is what it shows of the host beside its image. */
export interface Disks {
  image: string;
  beside?: string;
}

/** Those alone, of whatever has them. */
export function disksOf({ image, beside }: Disks): Disks {
  return beside === undefined ? { image } : { image, beside };
}

/** What a machine is booted from. */
export interface TemplateParts extends Disks {
  kernel: string;
  initrd: string;
}

/** A machine that was booted once and saved where its guest waits, unsealed: every sandbox begins as a copy of it. */
export interface Template<S extends Shape> extends TemplateParts {
  shape: S;
  memory: string;
  state: string;
}

/** The root of an image of the store, and what says that it is still the same. */
export interface ImageRoot {
  path: string;
  fingerprint: string;
}

/** What a machine needs that is booted for nobody. */
export interface BootContext {
  keeper: Keeper;
  guest: string;
  /** A directory of the daemon's alone. */
  store: string;
  takeUid(): Promise<number | undefined>;
  releaseUid(uid: number): void;
}

export interface TemplateContext extends BootContext {
  /** How much memory a machine leaves to its sandbox, and whether that is what most have. */
  size: number;
  isUsualSize: boolean;
  /** Undefined: the host's own programs. */
  root?: ImageRoot;
  beside?: Beside;
  progress: Progress;
}

/** How a kind of machine is booted and saved. */
export interface Boot<Machine> {
  /** For the log. */
  words: string;
  /** Whose words its log may hold. */
  vmm: string;
  start(sandboxId: string, dir: string, uid: number | undefined): Promise<Machine & { kept: Kept }>;
  /** Resolves when the guest waits. */
  ready(machine: Machine): Promise<void>;
  /** As `state` and `memory` in the directory. */
  save(machine: Machine, dir: string): Promise<void>;
  /** Removes what is of no use once the machine is gone. */
  clear?(dir: string): Promise<void>;
}

/** Templates of images, with parts of the host beside, and of other sizes than the usual, that are kept; each takes as much disk as
 * its machine has used of its memory. */
const keptOfImages = 4;
const keptOfBeside = 2;
const keptOfSizes = 3;

/** What is on disk if it still fits, else a new one. `identity`: everything that a saved machine depends on. */
export async function findTemplate<S extends Shape, Machine>(
  context: TemplateContext,
  { folder, parts, shape, identity }: { folder: string; parts: TemplateParts; shape: S; identity: unknown },
  boot: Boot<Machine>,
): Promise<Template<S>> {
  const key = hash("sha256", JSON.stringify([parts, shape, identity])).slice(0, 32);
  const { place, count } = placeOf(context, key);
  const directory = `${context.store}/${folder}${place}`;
  const template = { ...parts, shape, memory: `${directory}/memory`, state: `${directory}/state` };
  if (await stat(template.state).catch(() => undefined)) {
    await touchTemplate(template.state);
    return template;
  }
  await make(context, directory, boot);
  await keepTemplate(directory, count);
  return template;
}

async function make<Machine>(
  context: TemplateContext,
  directory: string,
  boot: Boot<Machine>,
): Promise<void> {
  context.progress(boot.words);
  const building = buildingPlace(directory);
  await rm(building, { recursive: true, force: true });
  await mkdir(building, { recursive: true, mode: 0o700 });
  const uid = await context.takeUid();
  const sandboxId = `template-${randomUUID()}`;
  try {
    const machine = await boot.start(sandboxId, building, uid);
    try {
      const ended = machine.kept.ended.then(async (how): Promise<never> => {
        const words = await describeEnd(how, `${building}/launch.log`, boot.vmm);
        throw new CaissonError("SANDBOX_FAILED", `the machine ended while it booted: ${words}`);
      });
      ended.catch(() => {});
      await Promise.race([boot.ready(machine).catch((error) => endedFirst(ended, error)), ended]);
      await boot.save(machine, building);
    } finally {
      await context.keeper.kill(sandboxId);
    }
  } finally {
    if (uid !== undefined) context.releaseUid(uid);
  }
  await boot.clear?.(building);
}

/** Where it is kept, and how many are there. */
function placeOf({ root, beside, size, isUsualSize }: TemplateContext, key: string) {
  if (root) return { place: `-of-images/${key}`, count: keptOfImages };
  if (beside) return { place: `-with-toolchains/${key}`, count: keptOfBeside };
  return isUsualSize
    ? { place: `/${key}`, count: 1 }
    : { place: `-of-sizes/${nameOfSize(size, key)}`, count: keptOfSizes };
}

/** A port that is closed tells less than why. */
async function endedFirst(ended: Promise<never>, error: unknown): Promise<never> {
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
  throw error;
}

/** Files by which another version of them is told. */
export async function versionsOf(paths: readonly string[]): Promise<unknown[]> {
  return Promise.all(
    paths.map(async (path) => {
      const { mtimeMs, size } = await stat(path);
      return [path, mtimeMs, size];
    }),
  );
}
