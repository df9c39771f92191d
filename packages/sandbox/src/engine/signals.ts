import { constants } from "node:os";
import { CaissonError } from "@caisson/contract";

const byName = constants.signals as Record<string, number>;
const byNumber = new Map(Object.entries(byName).map(([name, number]) => [number, name]));
// Two names share a number on Linux; people know these.
byNumber.set(constants.signals.SIGABRT, "SIGABRT");
byNumber.set(constants.signals.SIGCHLD, "SIGCHLD");
byNumber.set(constants.signals.SIGIO, "SIGIO");

/** `SIGKILL` for 9; `SIG35` for one without a name. */
export function signalName(number: number): string {
  return number === 0 ? "" : (byNumber.get(number) ?? `SIG${number}`);
}

/** 15 for `SIGTERM`, `TERM`, `sigterm` or `15`. */
export function signalNumber(name: string): number {
  const upper = name.toUpperCase();
  const known = byName[upper] ?? byName[`SIG${upper}`];
  const number = known ?? (/^\d{1,2}$/.test(name) ? Number(name) : 0);
  if (number >= 1 && number <= 64) return number;
  throw new CaissonError("INVALID_INPUT", "the signal must be a name such as SIGTERM or TERM");
}
