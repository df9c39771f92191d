import { access, constants } from "node:fs/promises";

/** Where administrators put programs: a sandbox must not be started by what some PATH leads to. */
const directories = [
  "/usr/bin",
  "/usr/local/bin",
  "/bin",
  "/usr/sbin",
  "/sbin",
  "/run/current-system/sw/bin",
];

/** @param first a directory to look in before them */
export async function findProgram(name: string, first?: string): Promise<string | undefined> {
  for (const directory of first === undefined ? directories : [first, ...directories]) {
    const path = `${directory}/${name}`;
    const executable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (executable) return path;
  }
  return undefined;
}
