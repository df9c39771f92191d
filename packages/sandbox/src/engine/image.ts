import { type BigIntStats, lstatSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { CaissonError, type Mechanism, MechanismSchema, MechanismState } from "@caisson/contract";
import { Mount_Kind } from "@caisson/contract/link";
import type { ImageConfig, ImageStore } from "../images/index.ts";
import { canMapOwners } from "../toolchains/index.ts";
import { inside } from "./inside.ts";
import { checkPlace, type MountPlan, realDirectory } from "./workspace.ts";

/** What a sandbox's root is made from, where that is not the host. */
export interface ResolvedImage {
  /** As it is shown: a name or a path. */
  name: string;
  /** Of an image of the store; empty for a directory. */
  id: string;
  /** Its real directory, and what that was when it was looked at. */
  root: string;
  stats: BigIntStats;
  config: ImageConfig | undefined;
}

/** Finds an image; undefined for the host's own programs. */
export async function resolveImage(
  image: string,
  store: ImageStore,
  home: string,
): Promise<ResolvedImage | undefined> {
  if (image === "" || image === "host") return undefined;
  if (image.startsWith("/")) {
    const { dir, stats } = await realDirectory(image).catch((error) => {
      throw error instanceof CaissonError && error.code === "WORKSPACE_REFUSED"
        ? new CaissonError("IMAGE_NOT_FOUND", `${image} is no directory that the daemon can read`)
        : error;
    });
    checkPlace(dir, home, homedir());
    return { name: dir, id: "", root: dir, stats, config: undefined };
  }
  const record = store.get(image);
  const { dir, stats } = await realDirectory(store.rootOf(record));
  return { name: record.name, id: record.id, root: dir, stats, config: record.config };
}

/** What is handed in of an image: its root, before everything else. */
export function imageMounts(image: ResolvedImage | undefined, mapOwner: boolean): MountPlan {
  if (!image) return { sources: [], mounts: [] };
  const { root, stats } = image;
  return {
    sources: [{ path: root, readOnly: true, mapOwner: mapOwner && canMapOwners(root), refuseNested: false }],
    mounts: [
      {
        kind: Mount_Kind.ROOT,
        path: "/",
        device: stats.dev,
        inode: stats.ino,
        isFile: false,
        readOnly: true,
      },
    ],
  };
}

/** Names that belong to the sandbox, whatever an image says. */
const ownVariables = new Set(["HOME", "USER", "LOGNAME", "CAISSON_SANDBOX"]);

export function imageEnv(image: ResolvedImage | undefined): Record<string, string> {
  const env = Object.fromEntries(
    Object.entries(image?.config?.env ?? {}).filter(([name]) => !ownVariables.has(name)),
  );
  if (env.PATH) env.PATH = `${env.PATH}:${inside.helpers}`;
  return env;
}

/** Where commands start without a project: where the image says, if it has that directory. */
export function imageWorkdir(image: ResolvedImage | undefined): string {
  const workdir = image?.config?.workdir ?? "";
  if (!image || !/^(\/[^/\0]+)+\/?$/.test(workdir) || Buffer.byteLength(workdir) > 1024) return "";
  let at = image.root;
  for (const segment of workdir.split("/").filter(Boolean)) {
    at = join(at, segment);
    // A link would have to be followed inside the sandbox.
    if (segment === ".." || segment === "." || !lstatSync(at, { throwIfNoEntry: false })?.isDirectory())
      return "";
  }
  return workdir.replace(/\/$/, "");
}

/** For the report: what the root is made of. */
export function imageMechanism(image: ResolvedImage | undefined): Mechanism {
  const detail = image
    ? `${image.name}${image.id ? ` (sha256:${image.id.slice(0, 12)})` : ""}, read-only`
    : "of the host only programs, libraries and parts of /etc, read-only";
  return create(MechanismSchema, {
    name: "image",
    state: MechanismState.ENFORCED,
    by: "read-only mounts",
    detail,
  });
}
