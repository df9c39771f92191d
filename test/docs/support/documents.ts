// The documents, and what stands in them.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../support/daemon.ts";

export interface Fence {
  language: string;
  /** What the info string says behind the language: why it is not run, for instance. */
  note: string;
  line: number;
  text: string;
}

export interface Document {
  /** From the repository's root. */
  path: string;
  text: string;
  fences: Fence[];
  /** Code in running text and tables, fences aside. */
  spans: { line: number; text: string }[];
}

/** Every document that people read. */
export const everything = [
  "*.md",
  "docs/**/*.md",
  "spec/*.md",
  "packages/*/README.md",
  "packages/*/src/**/README.md",
  "guest/README.md",
  "test/**/README.md",
];

export function documents(patterns: readonly string[]): Document[] {
  const paths = patterns.flatMap((pattern) => globSync(pattern, { cwd: root }));
  return paths
    .sort()
    .filter((path) => !path.includes("node_modules"))
    .map(read);
}

function read(path: string): Document {
  const text = readFileSync(join(root, path), "utf8");
  const fences: Fence[] = [];
  const spans: Document["spans"] = [];
  let open: Fence | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const mark = /^\s*```(\S*)\s*(.*)$/.exec(line);
    if (mark && open) {
      fences.push(open);
      open = undefined;
    } else if (mark) {
      open = { language: mark[1]!, note: mark[2]!, line: index + 1, text: "" };
    } else if (open) {
      open.text += `${line}\n`;
    } else {
      for (const span of line.matchAll(/`([^`]+)`/g)) spans.push({ line: index + 1, text: span[1]! });
    }
  }
  if (open) throw new Error(`${path}: the fence in line ${open.line} is not closed`);
  return { path, text, fences, spans };
}

/** The reason of a fence marked `no-run: …`. A mark without a reason is an error. */
export function whyNotRun(document: Document, fence: Fence): string | undefined {
  if (fence.note === "") return undefined;
  const reason = /^no-run: (.+)$/.exec(fence.note)?.[1];
  if (!reason) throw new Error(`${document.path}:${fence.line}: \`${fence.note}\` is no reason`);
  return reason;
}
