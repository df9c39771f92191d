import { chmod, mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { HostEntry } from "../bubblewrap/host-root.ts";
import type { ImageEntry } from "./image-root.ts";

/** Inside: the guest binary, and the directory in which it makes its door. */
const guestFile = "/.caisson-guest";
const doorDirectory = "/.caisson-door";

/** Private, empty and in memory; the seal mounts those that it bounds anew. */
const privateDirectories = ["/dev/shm", "/home", "/run", "/tmp", "/var/tmp"];
/** Made in the bundle's root; others are made by gVisor in what is mounted there. */
const ownDirectories = ["/proc", "/dev", "/etc", "/home", "/run", "/tmp", "/var/tmp"];
/** What is written to /run: a few small files of the guest's. */
const runBytes = 16 * 1024 * 1024;

/** What the guest gives up when it seals itself; none of it reaches beyond gVisor's own kernel. */
const capabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_NET_ADMIN",
  "CAP_NET_BIND_SERVICE",
  "CAP_NET_RAW",
  "CAP_SETGID",
  "CAP_SETPCAP",
  "CAP_SETUID",
  "CAP_SYS_ADMIN",
];

export interface BundleParts {
  /** Made here: the bundle, and the directory of the guest's door. */
  dir: string;
  /** The guest binary on the host. */
  guest: string;
  /** What shows of the host or of an image. */
  shown: readonly ImageEntry[];
}

/** The socket that the guest makes. */
export function doorOf(dir: string): string {
  return join(dir, "door", "link.sock");
}

/** Makes an OCI bundle: a root of empty places, and what is mounted there. */
export async function writeBundle({ dir, guest, shown }: BundleParts): Promise<string> {
  const bundle = join(dir, "bundle");
  const root = join(bundle, "root");
  const door = join(dir, "door");
  await mkdir(door, { mode: 0o700 });
  await openDirectory(root);
  for (const path of [...ownDirectories, doorDirectory]) await openDirectory(join(root, path));
  await writeFile(join(root, guestFile), "");
  const binds: Bind[] = [];
  // Parents before what lies in them.
  for (const entry of shown.toSorted((one, other) => (one.path < other.path ? -1 : 1))) {
    const place = join(root, entry.path);
    await openDirectory(dirname(place));
    if (entry.kind === "symlink") {
      await symlink(entry.target, place);
      continue;
    }
    if (entry.kind === "copy") {
      await writeFile(place, entry.content);
      await chmod(place, entry.mode);
      continue;
    }
    // What lies in a directory that shows already has its place there.
    const isInside = binds.some(({ destination }) => entry.path.startsWith(`${destination}/`));
    if (isInside) continue;
    if ((await stat(entry.source)).isDirectory()) await openDirectory(place);
    else await writeFile(place, "");
    binds.push(bind(entry.path, entry.source, "ro"));
  }
  const own = [bind(guestFile, guest, "ro"), bind(doorDirectory, door, "rw")];
  await writeFile(join(bundle, "config.json"), JSON.stringify(configOf([...binds, ...own])), { mode: 0o600 });
  return bundle;
}

/** A directory that everybody inside can pass through, whatever the daemon's umask; so are those on the way to it. */
async function openDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

/** One that does nothing, to see whether they can be made here. */
export async function writeTrialBundle(dir: string, hostRoot: readonly HostEntry[]): Promise<string> {
  const shown = hostRoot.filter(({ path }) => !path.startsWith("/etc/"));
  const bundle = await writeBundle({ dir, guest: "/bin/true", shown });
  const file = join(bundle, "config.json");
  const config: ReturnType<typeof configOf> = JSON.parse(await readFile(file, "utf8"));
  config.process.args = ["/bin/true"];
  await writeFile(file, JSON.stringify(config));
  return bundle;
}

function configOf(binds: readonly Bind[]) {
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid: 0, gid: 0 },
      args: [guestFile, "init", "--listen", `${doorDirectory}/link.sock`],
      env: [],
      cwd: "/",
      noNewPrivileges: true,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      rlimits: [{ type: "RLIMIT_NOFILE", hard: 65_536, soft: 65_536 }],
    },
    root: { path: "root", readonly: false },
    hostname: "caisson",
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs" },
      ...privateDirectories.map((destination) => ({
        destination,
        type: "tmpfs",
        source: "tmpfs",
        options: destination === "/run" ? [`size=${runBytes}`] : [],
      })),
      ...binds,
    ],
    linux: { namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })) },
  };
}

interface Bind {
  destination: string;
  type: "bind";
  source: string;
  options: string[];
}

function bind(destination: string, source: string, mode: "ro" | "rw"): Bind {
  return { destination, type: "bind", source, options: [mode, "rbind", "nosuid", "nodev"] };
}
