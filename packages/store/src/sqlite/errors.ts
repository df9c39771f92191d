import { CaissonError } from "@caisson/contract";

// Primary result codes of SQLite.
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOTADB = 26;

function primaryCode(thrown: unknown): number {
  const code = (thrown as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" ? code & 0xff : 0;
}

/** Another connection holds a lock that is in the way. */
export function isBusy(thrown: unknown): boolean {
  const code = primaryCode(thrown);
  return code === BUSY || code === LOCKED;
}

/** The file is not what SQLite wrote. */
export function isCorrupt(thrown: unknown): boolean {
  const code = primaryCode(thrown);
  return code === CORRUPT || code === NOTADB;
}

/** An error of SQLite or of the file system below it, in the words of the table. */
export function storageError(thrown: unknown): CaissonError {
  if (thrown instanceof CaissonError) return thrown;
  const code = primaryCode(thrown);
  if (code === FULL)
    return new CaissonError("STORAGE_FULL", "the disk that holds the log is full", { cause: thrown });
  if (isBusy(thrown)) {
    return new CaissonError("UNAVAILABLE", "another process has locked the log", { cause: thrown });
  }
  if (isCorrupt(thrown))
    return corruptLog("the log's database is damaged; stop and follow docs/recovery.md", thrown);
  const errno = (thrown as NodeJS.ErrnoException | null)?.code;
  if (errno === "ENOSPC" || errno === "EDQUOT") {
    return new CaissonError("STORAGE_FULL", "the disk that holds the log is full", { cause: thrown });
  }
  return new CaissonError("STORAGE_FAILED", "the log cannot be written", { cause: thrown });
}

export function corruptLog(message: string, cause?: unknown): CaissonError {
  return new CaissonError("CORRUPT_LOG", message, { cause });
}
