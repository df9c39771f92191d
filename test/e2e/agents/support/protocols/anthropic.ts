import { type Body, type Protocol, wordsOf } from "./protocol.ts";

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

const usage = { input_tokens: 10, output_tokens: 5 };

function message(fields: object): object {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "scripted",
    usage,
    stop_sequence: null,
    ...fields,
  };
}

function stream(block: object, deltas: object[], stop: string): string[] {
  return [
    event("message_start", { message: message({ content: [], stop_reason: null }) }),
    event("content_block_start", { index: 0, content_block: block }),
    ...deltas.map((delta) => event("content_block_delta", { index: 0, delta })),
    event("content_block_stop", { index: 0 }),
    event("message_delta", {
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event("message_stop", {}),
  ];
}

/** Messages API, as Claude Code speaks it. */
export const anthropic: Protocol = {
  name: "anthropic",
  paths: /^\/v1\/messages(\?|$)/,
  firstWord: 2,
  wantsStream: (_path, body) => body.stream === true,
  hasTools: (body) => (body.tools ?? []).some(({ name }: Body) => name === "Bash"),
  results: (body) =>
    body.messages
      .flatMap(({ content }: Body) => (Array.isArray(content) ? content : []))
      .filter(({ type }: Body) => type === "tool_result").length,
  call: (command, body) =>
    stream(
      { type: "tool_use", id: `toolu_${anthropic.results(body)}`, name: "Bash", input: {} },
      [{ type: "input_json_delta", partial_json: JSON.stringify({ command, description: "a step" }) }],
      "tool_use",
    ),
  say: (text) =>
    stream(
      { type: "text", text: "" },
      wordsOf(text).map((word) => ({ type: "text_delta", text: word })),
      "end_turn",
    ),
  whole: (text) => message({ content: [{ type: "text", text }], stop_reason: "end_turn" }),
};
