import type { Guest } from "../link/guest.ts";
import { inside, insidePath } from "./inside.ts";
import type { SandboxPlan } from "./spec.ts";

export interface BroughtFile {
  path: string;
  content: Uint8Array;
}

/** Files that have to be inside before the first command starts, written over the link. */
export async function bringFiles(files: readonly BroughtFile[], guest: Guest): Promise<void> {
  const { signal } = new AbortController();
  for (const { path, content } of files) {
    const options = { path, mode: 0o644, parents: true, ifMatch: "", maxBytes: BigInt(content.length) };
    await guest.files.write(options, only(content), signal);
  }
}

/** What presets tell the tools inside, where a profile lets anybody write in the home directory. */
export function toolFiles({ network, profile }: SandboxPlan): BroughtFile[] {
  const { allowWrite } = profile;
  if (allowWrite.length > 0 && !allowWrite.some((path) => insidePath(path) === inside.home)) return [];
  return (network.presetFiles ?? []).map(({ path, content }) => ({
    path: `${inside.home}/${path}`,
    content: Buffer.from(content),
  }));
}

async function* only(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}
