import { mkdir, readlink } from "node:fs/promises";
import { CaissonError } from "@caisson/contract/errors";

/** Makes the store's directory of images, which may be a link to one that several stores share. */
export async function openStore(store: string): Promise<void> {
  const images = `${store}/images`;
  try {
    await mkdir(images, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const link = await readlink(images).catch(() => undefined);
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    const why =
      link === undefined ? `it cannot be made (${code})` : `it is a link that leads nowhere (${code})`;
    const words = `the directory \`images\` of the store of microVMs (microvm.store) is not usable: ${why}`;
    throw new CaissonError("SANDBOX_FAILED", words, { cause });
  }
}
