import { CaissonError } from "./errors.ts";
import { rules } from "./rules.ts";

const encoder = new TextEncoder();
/** C0, DEL and C1: what a terminal or a log would act upon. */
const control = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * The absolute path that a caller means. `.` and `..` are resolved by name, before anything is looked
 * up; `workdir` is absolute and is where relative paths begin. Throws INVALID_PATH for what is malformed and
 * PATH_LEAVES_ROOT for what would climb above the root.
 */
export function resolvePath(path: string, workdir: string): string {
  checkPath(path);
  const resolved: string[] = path.startsWith("/") ? [] : segmentsOf(workdir);
  for (const segment of segmentsOf(path)) {
    if (segment !== "..") resolved.push(segment);
    else if (resolved.pop() === undefined) {
      throw new CaissonError("PATH_LEAVES_ROOT", "`..` climbs above the root", {
        metadata: { rule: "paths.root" },
      });
    }
  }
  const absolute = `/${resolved.join("/")}`;
  if (encoder.encode(absolute).length > rules.paths.max_bytes) throw tooLong();
  return absolute;
}

/** Throws INVALID_PATH unless the path is well formed; says nothing about where it leads. */
export function checkPath(path: string): void {
  if (path === "") throw invalid("a path is empty; `.` is the working directory", "paths.empty");
  if (!path.isWellFormed()) throw invalid("a path is not valid UTF-8", "paths.utf8");
  if (control.test(path)) throw invalid("a path contains a control character", "paths.control");
  if (encoder.encode(path).length > rules.paths.max_bytes) throw tooLong();
  for (const segment of path.split("/")) {
    if (encoder.encode(segment).length > rules.paths.max_segment_bytes) {
      throw invalid(
        `a path's segment is longer than ${rules.paths.max_segment_bytes} bytes`,
        "paths.max_segment_bytes",
      );
    }
  }
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}

function tooLong(): CaissonError {
  return invalid(`a path is longer than ${rules.paths.max_bytes} bytes`, "paths.max_bytes");
}

function invalid(message: string, rule: string): CaissonError {
  return new CaissonError("INVALID_PATH", message, { metadata: { rule } });
}
