import { hash } from "node:crypto";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { CaissonError } from "@caisson/contract/errors";
import { unpackLegacyLz4 } from "./lz4.ts";
import { putInPlace } from "./put-in-place.ts";

/** No kernel is larger; what says so is not one. */
const maxKernelBytes = 512 * 1024 * 1024;

/**
 * The kernel inside of what a boot loader gets, as an ELF file: most releases of Firecracker start nothing else. Returns its
 * path; it is made once for each kernel.
 */
export async function makeVmlinux(image: string, directory: string): Promise<string> {
  const { mtimeMs, size } = await stat(image);
  const path = `${directory}/vmlinux-${hash("sha256", JSON.stringify([image, mtimeMs, size])).slice(0, 32)}`;
  if (await stat(path).catch(() => undefined)) return path;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(`${path}.${process.pid}`, unpackKernel(await readFile(image)));
  await chmod(`${path}.${process.pid}`, 0o444);
  await putInPlace(`${path}.${process.pid}`, path);
  return path;
}

/** By the boot protocol's header (`Documentation/arch/x86/boot.rst`). */
export function unpackKernel(image: Buffer): Buffer {
  if (image.subarray(0, 4).toString("latin1") === "\x7fELF") return image;
  if (image.length < 0x260 || image.subarray(0x202, 0x206).toString("latin1") !== "HdrS") {
    throw unusable("it is not one");
  }
  const code = ((image[0x1f1] || 4) + 1) * 512;
  const start = code + image.readUInt32LE(0x248);
  const payload = image.subarray(start, start + image.readUInt32LE(0x24c));
  if (payload.length < 16) throw unusable("it has no content");
  // The size of what comes out is behind it.
  const size = payload.readUInt32LE(payload.length - 4);
  if (size > maxKernelBytes) throw unusable("it is too large");
  const kernel = unpack(payload, size);
  if (kernel.subarray(0, 4).toString("latin1") !== "\x7fELF")
    throw unusable("what is in it is not a program");
  return kernel;
}

function unpack(payload: Buffer, size: number): Buffer {
  const content = payload.subarray(0, -4);
  switch (payload.toString("hex", 0, 4)) {
    case "02214c18":
      return unpackLegacyLz4(content, size);
    case "28b52ffd":
      return zstdDecompressSync(content, { maxOutputLength: maxKernelBytes });
  }
  // The size belongs to the format.
  if (payload.toString("hex", 0, 2) === "1f8b") {
    return gunzipSync(payload, { maxOutputLength: maxKernelBytes });
  }
  throw unusable("it is packed with something other than gzip, LZ4 or zstd");
}

function unusable(why: string): CaissonError {
  return new CaissonError("NO_DRIVER", `the kernel for virtual machines cannot be unpacked: ${why}`);
}
