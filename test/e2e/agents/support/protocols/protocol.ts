// biome-ignore lint/suspicious/noExplicitAny: three providers' requests; only what the script needs is looked at.
export type Body = any;

/** One provider's way to ask a model and to stream its answer. */
export interface Protocol {
  name: string;
  paths: RegExp;
  wantsStream(path: string, body: Body): boolean;
  /** Is this the conversation itself, and not a question beside it (a title, a check)? */
  hasTools(body: Body): boolean;
  /** How many results of tools the conversation holds: that is the step of the script. */
  results(body: Body): number;
  /** An answer that calls the shell, as events. */
  call(command: string, body: Body): string[];
  /** An answer in words, as events. */
  say(text: string): string[];
  /** The number of the event with an answer's first word. */
  firstWord: number;
  /** An answer in one piece. */
  whole(text: string): unknown;
}

/** Words with the blanks behind them. */
export function wordsOf(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}
