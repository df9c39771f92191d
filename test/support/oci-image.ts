// Images made by hand, so that tests know every byte of them.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";

export interface Member {
  /** `0` a file, `1` a hard link, `2` a link, `3` a device, `5` a directory, `6` a FIFO. Default: a file. */
  kind?: string;
  name: string;
  mode?: number;
  content?: string | Buffer;
  target?: string;
}

/** A tar archive of exactly these members. */
export function tarOf(members: readonly Member[]): Buffer {
  const blocks = members.flatMap(({ kind = "0", name, mode = 0o755, content = "", target = "" }) => {
    const bytes = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write(mode.toString(8).padStart(7, "0"), 100);
    header.write(bytes.length.toString(8).padStart(11, "0"), 124);
    header.write("14000000000", 136);
    header.write(kind, 156);
    header.write(target, 157);
    header.write("ustar\0" + "00", 257);
    header.fill(" ", 148, 156);
    const sum = header.reduce((all, byte) => all + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

export interface ImageInit {
  name?: string;
  layers: Buffer[];
  config?: Record<string, unknown>;
  compress?: "gzip" | "zstd";
  /** Lies about what the layers come to. */
  diffIds?: string[];
}

/** Writes an OCI layout. */
export function writeLayout(
  dir: string,
  { name = "", layers, config = {}, compress, diffIds }: ImageInit,
): void {
  const blobs = join(dir, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (bytes: Buffer) => {
    const digest = sha256(bytes);
    writeFileSync(join(blobs, digest), bytes);
    return { digest: `sha256:${digest}`, size: bytes.length };
  };
  const pack = { gzip: gzipSync, zstd: zstdCompressSync };
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const rootfs = { type: "layers", diff_ids: diffIds ?? layers.map((layer) => `sha256:${sha256(layer)}`) };
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  const manifest = {
    schemaVersion: 2,
    config: put(json({ architecture, os: "linux", config, rootfs })),
    layers: layers.map((layer) => put(compress ? pack[compress](layer) : layer)),
  };
  const annotations = name ? { "org.opencontainers.image.ref.name": name } : {};
  const entry = { ...put(json(manifest)), platform: { os: "linux", architecture }, annotations };
  writeFileSync(join(dir, "index.json"), json({ schemaVersion: 2, manifests: [entry] }));
  writeFileSync(join(dir, "oci-layout"), json({ imageLayoutVersion: "1.0.0" }));
}

/** The programs of busybox as a layer. */
export function busyboxLayer(): Buffer {
  const applets = [
    "sh",
    "ls",
    "cat",
    "id",
    "env",
    "pwd",
    "echo",
    "touch",
    "find",
    "stat",
    "grep",
    "nc",
    "rm",
  ];
  const { stdout, status } = spawnSync("cat", ["/usr/bin/busybox"], { maxBuffer: 64 << 20 });
  if (status !== 0) throw new Error("busybox-static is not installed");
  return tarOf([
    { kind: "5", name: "bin/" },
    // Set-uid, as programs of images often are.
    { name: "bin/busybox", mode: 0o4755, content: stdout },
    ...applets.map((name) => ({ kind: "2", name: `bin/${name}`, target: "busybox" })),
    { kind: "5", name: "app/" },
    { name: "app/greeting", mode: 0o644, content: "from the image\n" },
    { name: "etc/motd", mode: 0o644, content: "welcome\n" },
    { name: "etc/passwd", mode: 0o644, content: "root:x:0:0:image:/root:/bin/sh\n" },
    { name: "var/lib/data", mode: 0o600, content: "data\n" },
    { kind: "3", name: "dev/null", mode: 0o666 },
  ]);
}
