import { isAtOrBelow, isPlain } from "./paths.ts";
import type { Developer } from "./toolchain.ts";

/**
 * Directories of a home in which people and programs keep secrets. No rule asks for any of them; a PATH
 * that leads into one does not open it either.
 */
const privatePlaces = [
  ".aws",
  ".azure",
  ".claude",
  ".codex",
  ".config",
  ".docker",
  ".gemini",
  ".gnupg",
  ".kube",
  ".mozilla",
  ".password-store",
  ".ssh",
  ".thunderbird",
  ".local/share/keyrings",
  ".local/share/uv/credentials",
  ".local/state",
  "snap",
];

/** Codex's installer puts its programs beside its user's login. Nothing else is in this directory. */
export const programsOfCodex = ".codex/packages/standalone";

/** Single files that hold tokens, wherever they lie. */
const privateNames = new Set([
  ".git-credentials",
  ".netrc",
  ".npmrc",
  ".pypirc",
  ".yarnrc",
  ".yarnrc.yml",
  "credentials",
  "credentials.toml",
]);

/** Never the root of the host, a home or what is above it, the kernel's directories, or a place of secrets. */
export function mayBeShown(path: string, developer: Developer, data: string): boolean {
  if (!isPlain(path)) return false;
  if (["/proc", "/sys", "/dev", "/etc", "/boot"].some((root) => isAtOrBelow(path, root))) return false;
  if (isAtOrBelow(developer.home, path) || isAtOrBelow(data, path) || isAtOrBelow(path, data)) return false;
  // One level is a whole part of the host, such as /opt, /srv or /var.
  if (path.indexOf("/", 1) === -1) return false;
  const names = path.split("/");
  if (names.some((name) => privateNames.has(name))) return false;
  if (path === `${developer.home}/${programsOfCodex}`) return true;
  return !privatePlaces.some((name) => {
    const place = `${developer.home}/${name}`;
    return isAtOrBelow(path, place) || isAtOrBelow(place, path);
  });
}
