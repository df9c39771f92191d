import { constants } from "node:fs";
import { copyFile, link, mkdir, open, rename } from "node:fs/promises";
import { basename } from "node:path";
import { CaissonError } from "@caisson/contract/errors";

/** Where the jailer puts a machine's root directory, as the host sees it. */
export function jailRoot(base: string, firecracker: string, id: string): string {
  return `${base}/${basename(firecracker)}/${id}/root`;
}

/** The jailer takes letters, digits and hyphens. */
export function jailId(sandboxId: string): string {
  return sandboxId.replaceAll(/[^A-Za-z0-9-]/g, "-").slice(0, 64);
}

/** Makes the jail's directory, with the files that the machine needs: none of them can be written there. */
export async function makeJail(root: string, files: Record<string, string>): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  for (const [name, path] of Object.entries(files)) await put(path, `${root}/${name}`);
}

async function put(path: string, place: string): Promise<void> {
  try {
    await link(path, place);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await copyFile(path, place, constants.COPYFILE_FICLONE);
  }
}

/** Takes a file that a machine has written out of its jail; nobody writes to it any more. */
export async function takeOut(path: string, place: string): Promise<void> {
  try {
    // A name, whatever is behind it: nothing is followed.
    await rename(path, place);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await copyOut(path, place);
  }
  await using file = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const found = await file.stat();
  if (!found.isFile() || found.nlink !== 1) {
    throw new CaissonError("SANDBOX_FAILED", "what the machine was kept in is not a file of its own");
  }
  await file.chown(process.getuid?.() ?? 0, process.getgid?.() ?? 0);
  await file.chmod(0o444);
}

async function copyOut(path: string, place: string): Promise<void> {
  await using source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if (!(await source.stat()).isFile()) {
    throw new CaissonError("SANDBOX_FAILED", "what the machine was kept in is not a file");
  }
  await copyFile(`/proc/self/fd/${source.fd}`, place, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
}
