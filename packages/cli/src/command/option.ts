import { parseDuration, parseSize } from "../text/units.ts";
import { UsageError } from "./usage-error.ts";

export type OptionKind = "flag" | "text" | "int" | "number" | "duration" | "size" | "choice";

/** One option of a command. */
export interface Option {
  kind: OptionKind;
  summary: string;
  /** One letter. */
  short?: string;
  /** What the value is called in help. Default: by kind. */
  value?: string;
  /** May be given several times. */
  many?: true;
  choices?: readonly string[];
  /** Left out of help and completions. */
  hidden?: true;
}

export type OptionTable = Readonly<Record<string, Option>>;

type One<O extends Option> = O["kind"] extends "flag"
  ? boolean
  : O["kind"] extends "int" | "number" | "duration" | "size"
    ? number
    : O extends { choices: readonly (infer C)[] }
      ? C
      : string;

type Value<O extends Option> = O["kind"] extends "flag"
  ? boolean
  : O extends { many: true }
    ? One<O>[]
    : One<O> | undefined;

/** Options by name, with the types that their kinds have: durations in milliseconds, sizes in bytes. */
export type Values<T extends OptionTable> = { [name in keyof T]: Value<T[name]> };

const valueNames: Record<Exclude<OptionKind, "flag">, string> = {
  text: "TEXT",
  int: "N",
  number: "N",
  duration: "TIME",
  size: "SIZE",
  choice: "CHOICE",
};

/** What stands for an option's value in help. */
export function valueName(option: Option): string {
  if (option.kind === "flag") return "";
  if (option.choices) return option.choices.join("|");
  return option.value ?? valueNames[option.kind];
}

/** Reads one value as the option's kind says. */
export function readValue(name: string, option: Option, text: string): string | number {
  switch (option.kind) {
    case "int":
      if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${name}: ${text} is not a whole number`);
      return Number(text);
    case "number":
      if (!/^\d{1,9}(\.\d{1,6})?$/.test(text)) throw new UsageError(`--${name}: ${text} is not a number`);
      return Number(text);
    case "duration":
      return parseDuration(text) ?? fail(`--${name}: ${text} is not a time; write it like 30s, 5m, 2h or 1d`);
    case "size":
      return parseSize(text) ?? fail(`--${name}: ${text} is not a size; write it like 512m or 2g`);
    case "choice":
      if (!option.choices?.includes(text)) {
        throw new UsageError(`--${name}: ${text} is not one of ${option.choices?.join(", ")}`);
      }
      return text;
    default:
      return text;
  }
}

function fail(message: string): never {
  throw new UsageError(message);
}
