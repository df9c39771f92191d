import { lstat, readlink, realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** How one path of the host appears in a sandbox. */
export type HostEntry =
  | { path: string; kind: "bind"; source: string }
  | { path: string; kind: "symlink"; target: string };

/** Where programs and libraries are. On a merged-/usr host all but the first are symlinks. */
const systemDirectories = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/**
 * The only parts of the host's /etc that a sandbox sees: what programs need to find libraries,
 * certificates, fonts and time. An allowlist, because /etc is where hosts keep secrets: shadow, ssh,
 * ssl/private, sudoers, machine-id, hosts, proxies and registries with passwords in them
 * (environment, profile.d, npmrc, pip.conf, apt, gitconfig, maven/settings.xml). A short one, because
 * each bind costs a tenth of a millisecond at every launch. What names the sandbox's own world
 * (passwd, group, hosts, hostname, resolv.conf, nsswitch.conf) is made by the guest.
 */
const etcEntries = [
  "/etc/alternatives",
  "/etc/crypto-policies",
  "/etc/fonts",
  "/etc/java-11-openjdk",
  "/etc/java-17-openjdk",
  "/etc/java-21-openjdk",
  "/etc/java-25-openjdk",
  "/etc/ld.so.cache",
  "/etc/localtime",
  "/etc/maven/logging",
  "/etc/maven/m2.conf",
  "/etc/mime.types",
  "/etc/os-release",
  "/etc/pki/ca-trust/extracted",
  "/etc/pki/tls/certs",
  "/etc/pki/tls/openssl.cnf",
  "/etc/protocols",
  "/etc/services",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
];

/** What of this host a sandbox of image `host` sees, read once: it does not change while a daemon lives. */
export async function readHostRoot(): Promise<HostEntry[]> {
  const entries = await Promise.all([...systemDirectories, ...etcEntries].map(readEntry));
  return entries.filter((entry) => entry !== undefined);
}

async function readEntry(path: string): Promise<HostEntry | undefined> {
  try {
    const status = await lstat(path);
    if (status.isFile() || status.isDirectory()) return { path, kind: "bind", source: path };
    if (!status.isSymbolicLink()) return undefined;
    const target = await readlink(path);
    if (isVisible(resolve(dirname(path), target))) return { path, kind: "symlink", target };
    const source = await realpath(path);
    const pointed = await lstat(source);
    return pointed.isFile() || pointed.isDirectory() ? { path, kind: "bind", source } : undefined;
  } catch {
    return undefined;
  }
}

/** Does a link to this path lead somewhere inside the sandbox too? */
function isVisible(path: string): boolean {
  return [...systemDirectories, ...etcEntries].some((root) => path === root || path.startsWith(`${root}/`));
}
