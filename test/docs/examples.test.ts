// Every shell example of the documents runs, in order, against a fresh daemon and a project of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { whyNoEngine } from "../support/engine.ts";
import { type Document, documents, type Fence, whyNotRun } from "./support/documents.ts";
import { engineWithImage, takesFromEngine } from "./support/engine-with-image.ts";
import { Newcomer } from "./support/newcomer.ts";

/** Written from the command table, each example by itself: cli.test.ts runs those. */
const elsewhere = ["docs/cli.md"];

const found = documents(["README.md", "CONTRIBUTING.md", "docs/*.md", "packages/*/README.md"]).filter(
  ({ path }) => !elsewhere.includes(path),
);

const noEngine = whyNoEngine();
const whyNot = (document: Document, fence: Fence) =>
  whyNotRun(document, fence) ?? (takesFromEngine.test(fence.text) && noEngine);

for (const document of found) {
  const examples = document.fences.filter(({ language }) => ["sh", "bash", "shell"].includes(language));
  for (const fence of examples) {
    const skip = whyNot(document, fence);
    if (skip) test(`${document.path}:${fence.line} is left out`, { skip }, () => {});
  }
  const run = examples.filter((fence) => !whyNot(document, fence));
  if (run.length === 0) continue;
  test(`the examples of ${document.path} run`, async () => {
    const takes = run.some(({ text }) => takesFromEngine.test(text));
    await using engine = takes ? await engineWithImage() : undefined;
    await using newcomer = await Newcomer.arrive(engine?.env);
    for (const fence of run) newcomer.run(fence.text);
  });
}

test("the README's first command prints what it says", async () => {
  await using newcomer = await Newcomer.arrive();
  assert.equal(newcomer.run("./caisson run -- echo hello"), "hello\n");
});
