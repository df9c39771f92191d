import { type Command, commonOptions, type Positional } from "./command.ts";
import { type Option, type OptionTable, readValue } from "./option.ts";
import { closest } from "./suggest.ts";
import { UsageError } from "./usage-error.ts";

export interface Parsed {
  options: Record<string, unknown>;
  positionals: string[];
}

/** Reads a command's words. What looks like an option and is none is an error with a suggestion. */
export function parse(command: Command, words: readonly string[]): Parsed {
  const table: OptionTable = { ...command.options, ...commonOptions };
  const parsed: Parsed = { options: defaults(table), positionals: [] };
  const places = command.positionals ?? [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === "--") {
      parsed.positionals.push(...words.slice(at + 1));
      break;
    }
    if (word.startsWith("--")) {
      at = long(table, words, at, parsed);
    } else if (word.startsWith("-") && word !== "-") {
      at = short(table, words, at, parsed);
    } else if (places[parsed.positionals.length]?.command) {
      parsed.positionals.push(...words.slice(at));
      break;
    } else {
      parsed.positionals.push(word);
    }
  }
  if (!parsed.options.help) checkCount(places, parsed.positionals);
  return parsed;
}

function defaults(table: OptionTable): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(table)) {
    options[name] = option.kind === "flag" ? false : option.many ? [] : undefined;
  }
  return options;
}

/** `--name`, `--name=value`, `--name value`. Returns the place of the last word taken. */
function long(table: OptionTable, words: readonly string[], at: number, parsed: Parsed): number {
  const word = words[at]!;
  const equals = word.indexOf("=");
  const name = word.slice(2, equals === -1 ? undefined : equals);
  const option = Object.hasOwn(table, name) ? table[name]! : unknown(`--${name}`, table);
  if (option.kind === "flag") {
    if (equals !== -1) throw new UsageError(`--${name} takes no value`);
    parsed.options[name] = true;
    return at;
  }
  if (equals !== -1) {
    put(parsed, name, option, word.slice(equals + 1));
    return at;
  }
  put(parsed, name, option, next(words, at, `--${name}`));
  return at + 1;
}

/** `-x`, several flags in one word, `-n value`, `-nvalue`. */
function short(table: OptionTable, words: readonly string[], at: number, parsed: Parsed): number {
  const word = words[at]!;
  for (let letter = 1; letter < word.length; letter++) {
    const found = Object.entries(table).find(([, option]) => option.short === word[letter]);
    if (!found) unknown(`-${word[letter]}`, table);
    const [name, option] = found!;
    if (option.kind === "flag") {
      parsed.options[name] = true;
      continue;
    }
    const attached = word.slice(letter + 1).replace(/^=/, "");
    put(parsed, name, option, attached || next(words, at, `-${word[letter]}`));
    return attached ? at : at + 1;
  }
  return at;
}

function next(words: readonly string[], at: number, name: string): string {
  const value = words[at + 1];
  if (value === undefined || value === "--") throw new UsageError(`${name} needs a value`);
  return value;
}

function put(parsed: Parsed, name: string, option: Option, text: string): void {
  const value = readValue(name, option, text);
  if (option.many) (parsed.options[name] as unknown[]).push(value);
  else parsed.options[name] = value;
}

function unknown(name: string, table: OptionTable): never {
  const names = Object.entries(table)
    .filter(([, option]) => !option.hidden)
    .map(([known]) => `--${known}`);
  const meant = name.startsWith("--") ? closest(name, names) : undefined;
  throw new UsageError(`there is no option ${name}${meant ? `; did you mean ${meant}?` : ""}`);
}

function checkCount(places: readonly Positional[], given: string[]): void {
  const missing = places.find((place, index) => !place.optional && given[index] === undefined);
  if (missing) throw new UsageError(`${missing.name} is missing`);
  if (!places.some((place) => place.rest) && given.length > places.length) {
    throw new UsageError(`${given[places.length]} is one word too many`);
  }
}
