import { type Body, type Protocol, wordsOf } from "./protocol.ts";

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

function stream(item: object, deltas: string[]): string[] {
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  return [
    event("response.created", { response: { id: "resp_1", status: "in_progress", output: [] } }),
    event("response.output_item.added", {
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    }),
    ...deltas.map((delta) =>
      event("response.output_text.delta", { item_id: "item_1", output_index: 0, content_index: 0, delta }),
    ),
    event("response.output_item.done", { output_index: 0, item: { ...item, status: "completed" } }),
    event("response.completed", { response: { id: "resp_1", status: "completed", output: [item], usage } }),
  ];
}

const said = (text: string) => ({
  type: "message",
  id: "item_1",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});

/** The name of the shell differs between versions and models. */
function shellOf(body: Body): { name: string; argument: (command: string) => object } {
  const names = new Set((body.tools ?? []).map(({ name }: Body) => name));
  if (names.has("exec_command")) return { name: "exec_command", argument: (cmd) => ({ cmd }) };
  if (names.has("shell_command")) return { name: "shell_command", argument: (command) => ({ command }) };
  return { name: "shell", argument: (command) => ({ command: ["sh", "-c", command] }) };
}

/** Responses API, as Codex speaks it. */
export const openai: Protocol = {
  name: "openai",
  paths: /^\/v1\/responses(\?|$)/,
  firstWord: 2,
  wantsStream: (_path, body) => body.stream === true,
  hasTools: (body) => (body.tools ?? []).length > 0,
  results: (body) => body.input.filter(({ type }: Body) => type === "function_call_output").length,
  call(command, body) {
    const { name, argument } = shellOf(body);
    const call = { type: "function_call", id: "item_1", call_id: `call_${openai.results(body)}`, name };
    return stream({ ...call, arguments: JSON.stringify(argument(command)) }, []);
  },
  say: (text) => stream(said(text), wordsOf(text)),
  whole: (text) => ({ id: "resp_1", status: "completed", output: [said(text)] }),
};
