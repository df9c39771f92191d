// What each probe must report, and how a probe's output is judged.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Cases of one probe that share a sentence and the outcomes that are right. */
interface Group {
  /** The heading of the threat list that it belongs to. */
  threat: string;
  probe: string;
  /** What holds. */
  title: string;
  /** Right outcomes; any of them. */
  expect: string[];
  cases: string[];
  /** Syscall groups with which it is allowed to be otherwise. */
  unless?: string[];
  /** Machines on which the cases exist; all if absent. */
  arch?: string[];
  /** What the test must have laid out for the cases to mean something. */
  needs?: string[];
}

interface Manifest {
  probes: string[];
  groups: Group[];
}

/** Under what the probes ran. */
export interface Circumstances {
  /** Syscall groups beyond the base list. */
  syscalls: readonly string[];
  /** What made the sandbox, where some cases end otherwise than the manifest says; `exceptions.json` says why. */
  driver?: string;
  /** What was laid out: `deny_read`, `read_only`, `guest_path`. */
  has: readonly string[];
}

/** One case and what came of it. */
export interface Judgement {
  case: string;
  title: string;
  got: string | undefined;
  expected: readonly string[];
  holds: boolean;
}

export const manifest = JSON.parse(
  readFileSync(join(import.meta.dirname, "manifest.json"), "utf8"),
) as Manifest;

/** Cases that end otherwise behind other walls. */
interface Exception {
  drivers: string[];
  cases: string[];
  /** Right outcomes there; `nothing said`: the probe finds nothing to report. */
  expect: string[];
  /** Why that is right, or what is lacking. */
  why: string;
  /** It is weaker there, and the sandbox's own report says so. */
  gap?: boolean;
}

export const exceptions = JSON.parse(
  readFileSync(join(import.meta.dirname, "exceptions.json"), "utf8"),
) as Exception[];

export function exceptionFor(driver: string | undefined, name: string): Exception | undefined {
  return exceptions.find(({ drivers, cases }) => driver && drivers.includes(driver) && cases.includes(name));
}

/** Judges everything that a probe printed, and everything that it should have printed. */
export function judge(probe: string, output: string, circumstances: Circumstances): Judgement[] {
  const outcomes = parse(output);
  const judgements: Judgement[] = [];
  for (const group of manifest.groups) {
    if (group.probe !== probe) continue;
    const applies =
      (group.arch?.includes(process.arch) ?? true) &&
      (group.needs ?? []).every((need) => circumstances.has.includes(need)) &&
      !(group.unless ?? []).some((name) => circumstances.syscalls.includes(name));
    for (const name of group.cases) {
      const got = outcomes.get(name);
      outcomes.delete(name);
      if (!applies) continue;
      const expected = exceptionFor(circumstances.driver, name)?.expect ?? group.expect;
      const holds = got !== undefined ? expected.includes(got) : expected.includes("nothing said");
      judgements.push({ case: name, title: group.title, got, expected, holds });
    }
  }
  for (const [name, got] of outcomes)
    judgements.push({
      case: name,
      title: "every outcome is in the manifest",
      got,
      expected: [],
      holds: false,
    });
  return judgements;
}

function parse(output: string): Map<string, string> {
  const outcomes = new Map<string, string>();
  for (const line of output.split("\n")) {
    const match = /^([\w./-]+): (.*)$/.exec(line);
    if (match) outcomes.set(match[1] as string, match[2] as string);
  }
  return outcomes;
}
