// What the probes expect to find: a workspace with things denied in it, links and sockets that lead out,
// and something outside that must stay as it is.
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { removeTree } from "../../support/remove-tree.ts";
import { manifest } from "./manifest.ts";

const probes = join(import.meta.dirname, "probes");
const secret = "a secret of the host\n";

/** Names in the workspace that the sandbox must not read. */
export const denied = ["denied", "denied.txt", "above/inner"] as const;

export interface Fixture extends AsyncDisposable {
  /** Everything lies below; removed at the end. */
  home: string;
  workspace: string;
  /** To be mounted read-only; holds a socket that the host listens on. */
  readOnly: string;
  canary: string;
  abstractSocket: string;
  /** What on the host is not as it should be after the probes ran. */
  damage(): string[];
}

export async function layOut(owner: { uid: number; gid: number }): Promise<Fixture> {
  const home = mkdtempSync(join(tmpdir(), "caisson-wall-"));
  chmodSync(home, 0o755);
  const at = (...parts: string[]) => join(home, ...parts);
  for (const folder of [
    "workspace/denied",
    "workspace/above/inner",
    "layers",
    "read-only",
    "workspace/programs",
  ])
    mkdirSync(at(folder), { recursive: true });
  writeFileSync(at("workspace/plain.txt"), "plain\n");
  for (const name of ["denied/secret.txt", "denied.txt", "above/inner/secret.txt"])
    writeFileSync(at("workspace", name), secret);
  writeFileSync(at("read-only/file.txt"), "file\n");
  writeFileSync(at("canary"), secret);
  symlinkSync("denied.txt", at("workspace/link-to-denied"));
  symlinkSync("denied", at("workspace/link-to-denied-directory"));
  symlinkSync("/etc", at("workspace/link-to-etc"));
  symlinkSync(at("canary"), at("workspace/link-to-canary"));
  for (const [name, program] of programs())
    copyFileSync(program, at("workspace/programs", name), constants.COPYFILE_FICLONE);
  const abstractSocket = `caisson-wall-${basename(home)}`;
  const servers = await Promise.all([
    listen(at("workspace/host.sock")),
    listen(at("read-only/host.sock")),
    listen(`\0${abstractSocket}`),
  ]);
  if (process.getuid?.() === 0) execFileSync("chown", ["-R", `${owner.uid}:${owner.gid}`, home]);
  const before = tree(at("workspace"));

  return {
    home,
    workspace: at("workspace"),
    readOnly: at("read-only"),
    canary: at("canary"),
    abstractSocket,
    damage: () => [
      ...(readFileSync(at("canary"), "utf8") === secret ? [] : ["the canary was changed"]),
      ...(tree(at("workspace")) === before ? [] : ["the workspace on the host was changed"]),
      ...find(home, ({ mode }) => (mode & 0o6000) !== 0).map((path) => `${path} has a set-id bit`),
      ...["/etc/caisson-probe", "/usr/caisson-probe", "/caisson-probe"].filter((path) => existsSync(path)),
    ],
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close();
      removeTree(home);
    },
  };
}

let compiled: Map<string, string> | undefined;

/** Each probe's program, compiled once for all sandboxes of a test file. */
function programs(): Map<string, string> {
  if (compiled) return compiled;
  const into = mkdtempSync(join(tmpdir(), "caisson-probes-"));
  process.on("exit", () => rmSync(into, { recursive: true, force: true }));
  compiled = new Map(manifest.probes.map((name) => [name, join(into, name)]));
  const flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-static"];
  for (const [name, program] of compiled)
    execFileSync("gcc", [...flags, "-o", program, join(probes, `${name}.c`)], { stdio: "inherit" });
  return compiled;
}

function listen(address: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.end("the host speaks\n"));
    server.once("error", reject);
    server.listen(address, () => {
      if (address.startsWith("/")) chmodSync(address, 0o777);
      resolve(server.unref());
    });
  });
}

/** Names, kinds, modes and contents, as one text that can be compared. */
function tree(folder: string): string {
  return find(folder, () => true)
    .map((path) => {
      const { mode, size } = lstatSync(path);
      return `${path} ${mode} ${(mode & 0o170000) === 0o100000 ? hash("sha256", readFileSync(path)) : size}`;
    })
    .join("\n");
}

function find(folder: string, wanted: (status: { mode: number }) => boolean): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      const self = wanted(lstatSync(path)) ? [path] : [];
      // The overlay's own work directory is closed even to its owner.
      const below = entry.isDirectory() && (lstatSync(path).mode & 0o500) === 0o500 ? find(path, wanted) : [];
      return [...self, ...below];
    });
}
