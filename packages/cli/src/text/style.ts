import type { Io, Sink } from "../io/io.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

const codes: Record<Style, [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export type Paint = (style: Style, text: string) => string;

/** Colours for a sink: only on a terminal that wants them. */
export function paintFor(sink: Sink, env: Io["env"]): Paint {
  const on = sink.isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
  if (!on) return (_style, text) => text;
  return (style, text) => `\u001b[${codes[style][0]}m${text}\u001b[${codes[style][1]}m`;
}
