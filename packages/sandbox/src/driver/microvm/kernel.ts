import { access, constants, readdir } from "node:fs/promises";

/** A kernel of the host's packages that a microVM can boot. */
export interface GuestKernel {
  release: string;
  image: string;
  /** The directory of its modules. */
  modules: string;
}

/** The newest kernel for virtual machines under /boot whose modules are there, else the newest of any kind. */
export async function findKernel(boot = "/boot", modules = "/lib/modules"): Promise<GuestKernel | undefined> {
  const names = await readdir(boot).catch(() => []);
  const releases = names.flatMap((name) => /^vmlinuz-(.+)$/.exec(name)?.[1] ?? []);
  const cloudFirst = (release: string) => Number(release.includes("cloud") || release.includes("kvm"));
  const ordered = releases.sort(
    (a, b) => cloudFirst(b) - cloudFirst(a) || b.localeCompare(a, "en", { numeric: true }),
  );
  for (const release of ordered) {
    const found = { release, image: `${boot}/vmlinuz-${release}`, modules: `${modules}/${release}` };
    if ((await readable(found.image)) && (await readable(`${found.modules}/modules.dep`))) return found;
  }
  return undefined;
}

function readable(path: string): Promise<boolean> {
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}
