import { hash } from "node:crypto";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { CaissonError } from "@caisson/contract/errors";
import { cpioArchive, cpioDirectory, cpioFile } from "./cpio.ts";
import type { GuestKernel } from "./kernel.ts";
import { modulesInOrder } from "./modules.ts";
import { putInPlace } from "./put-in-place.ts";

/** What the guest's kernel needs before it has a root; those that it was built with are left out. */
const wantedModules = [
  "virtio_mmio",
  "virtio_pci",
  "virtio_blk",
  "virtio_console",
  "vmw_vsock_virtio_transport",
  "crc32c_generic",
  "erofs",
  "overlay",
  // Programs that know no proxy are caught by these, on every port.
  "nft_chain_nat",
  "nft_redir",
  "nft_ct",
];

/** Makes the boot archive: the guest binary as the first process, and modules. Returns its path; it is made once. */
export async function makeInitrd(kernel: GuestKernel, guest: string, directory: string): Promise<string> {
  const order = modulesInOrder(await readFile(`${kernel.modules}/modules.dep`, "utf8"), wantedModules);
  const modules = await Promise.all(
    order.map(async (path, index) => {
      if (!path.endsWith(".ko")) {
        throw new CaissonError(
          "NO_DRIVER",
          `the kernel module ${path} is compressed, which is not supported`,
        );
      }
      const name = `modules/${String(index).padStart(2, "0")}-${path.slice(path.lastIndexOf("/") + 1)}`;
      return cpioFile(name, await readFile(`${kernel.modules}/${path}`));
    }),
  );
  const archive = cpioArchive([
    ...["dev", "proc", "sys", "root", "modules"].map(cpioDirectory),
    cpioFile("init", await readFile(guest), 0o755),
    ...modules,
  ]);
  const path = `${directory}/initrd-${hash("sha256", archive).slice(0, 32)}.cpio`;
  const there = await stat(path).catch(() => undefined);
  if (there?.size === archive.length) return path;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(`${path}.${process.pid}`, archive);
  // A machine's process is somebody else, whatever the daemon's mask.
  await chmod(`${path}.${process.pid}`, 0o644);
  await putInPlace(`${path}.${process.pid}`, path);
  return path;
}
