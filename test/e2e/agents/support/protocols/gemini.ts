import { type Body, type Protocol, wordsOf } from "./protocol.ts";

const chunk = (parts: object[], finishReason?: string) => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...(finishReason ? { finishReason } : {}) }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  modelVersion: "scripted",
});

const event = (data: object) => `data: ${JSON.stringify(data)}\r\n\r\n`;

/** generateContent and its stream, as Gemini CLI speaks it. */
export const gemini: Protocol = {
  name: "gemini",
  paths: /^\/v1(beta|alpha)?\/models\/[^/:]+:(streamGenerateContent|generateContent)/,
  firstWord: 0,
  wantsStream: (path) => path.includes(":streamGenerateContent"),
  hasTools: (body) =>
    (body.tools ?? [])
      .flatMap(({ functionDeclarations = [] }: Body) => functionDeclarations)
      .some(({ name }: Body) => name === "run_shell_command"),
  results: (body) =>
    body.contents
      .flatMap(({ parts = [] }: Body) => parts)
      .filter(({ functionResponse }: Body) => functionResponse).length,
  call: (command) => [
    event(
      chunk(
        [{ functionCall: { name: "run_shell_command", args: { command, description: "a step" } } }],
        "STOP",
      ),
    ),
  ],
  say: (text) => {
    const words = wordsOf(text);
    return words.map((word, at) =>
      event(chunk([{ text: word }], at === words.length - 1 ? "STOP" : undefined)),
    );
  },
  whole: (text) => chunk([{ text }], "STOP"),
};
